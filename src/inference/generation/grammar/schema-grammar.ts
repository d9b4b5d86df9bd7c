import type { ServiceError } from '../../../protocol/service-error.ts';
import { type GrammarWriter, literal, oneOf, repeated } from './grammar-writer.ts';
import { colon, objectRule, spaceRule, valueRule } from './json-rules.ts';
import { multipleExpression } from './multiple-grammar.ts';
import { integerExpression, numberExpression } from './number-grammar.ts';
import { type Member, objectExpression } from './object-grammar.ts';
import { patternExpression } from './pattern-grammar.ts';
import { readPattern } from './pattern-reader.ts';
import {
  countOf,
  expectAlone,
  isObject,
  keywordsBeside,
  keywordsOf,
  omit,
  type SchemaObject,
  type SchemaType,
  schemaList,
  type typeKeywords,
  typesOf,
  UnsupportedKeyword,
  unsupported,
} from './schema-keywords.ts';
import { mergeSchemas } from './schema-merge.ts';
import { areDisjoint } from './schema-overlap.ts';
import { checkRefs, resolveRef } from './schema-refs.ts';
import { checkedCount, stringExpression } from './string-grammar.ts';

/** Bounds of one schema. */
const schemaBounds = { nesting: 32, schemas: 4_096, enumValues: 2_048, enumChars: 65_536 } as const;

/** A schema that gets these wrong is none. */
const essential: readonly string[] = ['type', 'properties', 'required', '$ref'];

/**
 * An expression for JSON that satisfies the schema, its rules added to `writer`. Unless it is `strict`, keywords that
 * cannot be enforced are left out.
 */
export function schemaExpression(schema: unknown, writer: GrammarWriter, strict: boolean): string {
  checkRefs(schema);
  return new SchemaCompiler(schema, writer, strict).expression(schema, 0);
}

class SchemaCompiler {
  readonly #root: unknown;
  readonly #writer: GrammarWriter;
  readonly #strict: boolean;
  readonly #refs = new Map<string, string>();
  #schemas = 0;
  #enumValues = 0;
  #enumChars = 0;

  constructor(root: unknown, writer: GrammarWriter, strict: boolean) {
    this.#root = root;
    this.#writer = writer;
    this.#strict = strict;
  }

  expression(schema: unknown, depth: number): string {
    let rest = schema;
    for (;;) {
      try {
        return this.#exact(rest, depth);
      } catch (error) {
        // Members that this schema does not declare itself are not its to leave out.
        if (this.#strict || !(error instanceof UnsupportedKeyword) || !isObject(rest)) throw error;
        if (!Object.hasOwn(rest, error.keyword) || essential.includes(error.keyword)) throw error;
        rest = omit(rest, error.keyword);
      }
    }
  }

  #exact(schema: unknown, depth: number): string {
    this.#count(depth);
    if (schema === true) return valueRule(this.#writer);
    if (!isObject(schema)) throw unsupported('schema', 'a schema has to be an object or true');
    const keywords = keywordsOf(schema);
    if (keywords.includes('$ref')) return this.#ref(schema, depth);
    if (keywords.includes('allOf')) return this.#allOf(schema, depth);
    if (keywords.includes('const')) return this.#literals(schema, 'const', [schema.const]);
    if (keywords.includes('enum')) return this.#literals(schema, 'enum', schemaList(schema, 'enum'));
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      if (keywords.includes(keyword)) return this.#union(schema, keyword, depth);
    }
    const types = typesOf(schema);
    if (types.length === 0) return valueRule(this.#writer);
    return oneOf([...new Set(types)].map((type) => this.#ofType(type, schema, depth)));
  }

  #count(depth: number): void {
    this.#schemas += 1;
    if (depth > schemaBounds.nesting) {
      throw unsupported('schema', `nests deeper than ${schemaBounds.nesting} levels`);
    }
    if (this.#schemas > schemaBounds.schemas) {
      throw unsupported('schema', `has more than ${schemaBounds.schemas} parts`);
    }
  }

  #ref(schema: SchemaObject, depth: number): string {
    if (keywordsBeside(schema, '$ref').length > 0) {
      return this.expression({ allOf: [{ $ref: schema.$ref }], ...omit(schema, '$ref') }, depth + 1);
    }
    const ref = String(schema.$ref);
    const known = this.#refs.get(ref);
    if (known !== undefined) return known;
    const name = this.#writer.reserve('ref');
    this.#refs.set(ref, name);
    try {
      this.#writer.define(name, this.expression(resolveRef(this.#root, ref), depth));
    } catch (error) {
      // A schema that is tried again without a keyword must not take the rule that was never written.
      this.#refs.delete(ref);
      throw error;
    }
    return name;
  }

  #allOf(schema: SchemaObject, depth: number): string {
    const all = schemaList(schema, 'allOf');
    const beside = omit(schema, 'allOf');
    const [only, ...others] = keywordsBeside(schema, 'allOf').length === 0 ? all : [...all, beside];
    if (others.length === 0) return this.expression(only, depth + 1);
    const merged = others.reduce((left, right) => mergeSchemas(left, this.#followed(right)), this.#followed(only));
    return this.expression(merged, depth + 1);
  }

  /** The target of a reference, or of a chain of them. */
  #followed(schema: unknown): unknown {
    let at = schema;
    for (let hop = 0; isObject(at) && at.$ref !== undefined; hop += 1) {
      expectAlone(at, '$ref');
      if (hop > schemaBounds.nesting) throw unsupported('$ref', `is followed ${schemaBounds.nesting} times`);
      at = resolveRef(this.#root, at.$ref);
    }
    return at;
  }

  #union(schema: SchemaObject, keyword: 'anyOf' | 'oneOf', depth: number): string {
    let branches = schemaList(schema, keyword);
    if (keyword === 'oneOf' && this.#strict && !areDisjoint(this.#root, branches)) {
      throw unsupported(
        'oneOf',
        'its alternatives may overlap; give each a type or a constant member of its own, or use anyOf',
      );
    }
    if (keywordsBeside(schema, keyword, ['nullable']).length > 0) {
      const beside = omit(schema, keyword, 'nullable');
      branches = branches.map((branch) => mergeSchemas(beside, this.#followed(branch)));
    }
    const ways = branches.map((branch) => this.expression(branch, depth + 1));
    if (schema.nullable === true) ways.push('"null"');
    return this.#writer.rule('union', [...new Set(ways)].join(' | '));
  }

  #literals(schema: SchemaObject, keyword: 'const' | 'enum', values: readonly unknown[]): string {
    expectAlone(schema, keyword, ['type', 'nullable']);
    this.#enumValues += values.length;
    if (this.#enumValues > schemaBounds.enumValues) throw tooManyValues(keyword);
    const types = typesOf(schema);
    const allowed = values.filter((value) => types.length === 0 || types.some((type) => isOfType(value, type)));
    const texts = allowed.map((value) => JSON.stringify(value) ?? 'null');
    this.#enumChars += texts.reduce((sum, text) => sum + text.length, 0);
    if (texts.length === 0) throw unsupported(keyword, 'holds no value of the type that is asked for');
    if (this.#enumChars > schemaBounds.enumChars) throw tooManyValues(keyword);
    return this.#writer.rule('value', [...new Set(texts)].map(literal).join(' | '));
  }

  #ofType(type: SchemaType, schema: SchemaObject, depth: number): string {
    if (type === 'object') return this.#object(schema, depth);
    if (type === 'array') return this.#array(schema, depth);
    if (type === 'string') return stringExpression(schema, this.#writer);
    if (type === 'number' || type === 'integer') return this.#number(type, schema);
    return type === 'boolean' ? '("true" | "false")' : '"null"';
  }

  #number(type: 'number' | 'integer', schema: SchemaObject): string {
    const bound = (keyword: (typeof typeKeywords.number)[number]): number | undefined => {
      const value = schema[keyword];
      if (value === undefined) return undefined;
      if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
      throw unsupported(keyword, 'can be enforced for whole numbers below 2^53 only');
    };
    const [above, below] = [bound('exclusiveMinimum'), bound('exclusiveMaximum')];
    const [from, to] = [bound('minimum'), bound('maximum')];
    const minExclusive = above !== undefined && (from === undefined || above >= from);
    const maxExclusive = below !== undefined && (to === undefined || below <= to);
    const min = minExclusive ? above : from;
    const max = maxExclusive ? below : to;
    if (schema.multipleOf !== undefined) {
      const bounds = {
        min: min === undefined || !minExclusive ? min : min + 1,
        max: max === undefined || !maxExclusive ? max : max - 1,
      };
      const multiples = multipleExpression(schema.multipleOf, bounds, type === 'integer', this.#writer);
      return this.#writer.rule('number', multiples);
    }
    const expression =
      type === 'number'
        ? numberExpression({ min, max, minExclusive, maxExclusive })
        : integerExpression(
            min === undefined || !minExclusive ? min : min + 1,
            max === undefined || !maxExclusive ? max : max - 1,
          );
    if (expression === undefined) throw unsupported('minimum', 'no number lies between the bounds');
    return this.#writer.rule('number', expression);
  }

  #array(schema: SchemaObject, depth: number): string {
    const min = checkedCount('minItems', countOf(schema, 'minItems')) ?? 0;
    const max = checkedCount('maxItems', countOf(schema, 'maxItems'));
    if (max !== undefined && min > max) throw unsupported('minItems', 'is above "maxItems"');
    const { items, prefix } = itemsOf(schema);
    const closed = items === false || (items === undefined && prefix.length > 0 && min <= prefix.length);
    const most = closed ? Math.min(max ?? prefix.length, prefix.length) : max;
    if (most !== undefined && min > most) throw unsupported('minItems', 'is above the number of "prefixItems"');
    const first = prefix.slice(0, most).map((each) => this.expression(each, depth + 1));
    const rest = most !== undefined && most <= first.length ? undefined : this.#items(items, depth);
    const space = spaceRule(this.#writer);
    return this.#writer.rule('array', `"[" ${space} ${this.#list(first, rest, min, most)} ${space} "]"`);
  }

  #items(items: unknown, depth: number): string {
    return items === undefined ? valueRule(this.#writer) : this.expression(items, depth + 1);
  }

  /** Values with commas between them: `first` one by one, then `rest` again and again; `min` to `max` of them. */
  #list(first: readonly string[], rest: string | undefined, min: number, max: number | undefined): string {
    const space = spaceRule(this.#writer);
    const separator = `"," ${space}`;
    // A rule of its own: the engine multiplies what is repeated by what it consists of.
    const next = rest === undefined ? undefined : this.#writer.rule('next', `${separator} ${rest}`);
    const more = (least: number, most: number | undefined) =>
      next === undefined ? '' : repeated(next, Math.max(least, 0), most);
    if (first.length === 0) {
      if (rest === undefined || max === 0) return '""';
      const list = `${rest} ${more(min - 1, max === undefined ? undefined : max - 1)}`;
      return min === 0 ? `(${list})?` : list;
    }
    let tail = more(min - first.length, max === undefined ? undefined : max - first.length);
    for (let at = first.length - 1; at >= 0; at -= 1) {
      const one = at === 0 ? `${first[at]} ${tail}` : `${separator} ${first[at]} ${tail}`;
      tail = at < min ? one : `(${one})?`;
    }
    return tail;
  }

  #object(given: SchemaObject, depth: number): string {
    const schema = this.#withNames(given);
    const { properties = {}, required = [], additionalProperties } = schema;
    if (!isObject(properties)) throw unsupported('properties', 'has to be an object');
    if (!Array.isArray(required) || !required.every((name) => typeof name === 'string')) {
      throw unsupported('required', 'has to be an array of names');
    }
    const names = Object.keys(properties);
    const open = additionalProperties !== undefined && additionalProperties !== false;
    const undeclared = required.find((name) => !Object.hasOwn(properties, name));
    if (undeclared !== undefined) {
      throw unsupported('required', `"${String(undeclared).slice(0, 80)}" is not among the "properties"`);
    }
    const patterned = this.#patterned(schema, depth);
    if (names.length === 0 && additionalProperties === undefined && patterned === undefined) {
      return objectRule(this.#writer);
    }
    const members = names.map(
      (name): Member => ({
        name,
        required: required.includes(name),
        value: this.expression(properties[name], depth + 1),
      }),
    );
    const further = open ? this.expression(additionalProperties, depth + 1) : undefined;
    return objectExpression(members, { further, patterned }, this.#writer);
  }

  /** The schema with the names that `propertyNames` lists among its `properties`, and no others. */
  #withNames(schema: SchemaObject): SchemaObject {
    const { propertyNames, properties = {}, patternProperties, additionalProperties = true } = schema;
    if (!keywordsOf(schema).includes('propertyNames')) return schema;
    const names = listedNames(this.#followed(propertyNames));
    if (names === undefined || !isObject(properties) || patternProperties !== undefined) {
      throw unsupported('propertyNames', 'can be enforced with a list of names, and no patternProperties');
    }
    if (Object.keys(properties).some((name) => !names.includes(name))) {
      throw unsupported('propertyNames', 'does not allow a name of "properties"');
    }
    const further = additionalProperties === false ? [] : names.filter((name) => !Object.hasOwn(properties, name));
    const added = further.map((name) => [name, additionalProperties] as const);
    return {
      ...omit(schema, 'propertyNames'),
      properties: { ...properties, ...Object.fromEntries(added) },
      additionalProperties: false,
    };
  }

  /** Members whose names match a pattern. */
  #patterned(schema: SchemaObject, depth: number): string | undefined {
    const { properties = {}, patternProperties, additionalProperties } = schema;
    if (patternProperties === undefined) return undefined;
    if (!isObject(patternProperties)) throw unsupported('patternProperties', 'has to be an object');
    const [one, ...others] = Object.entries(patternProperties);
    if (one === undefined) return undefined;
    const [pattern, value] = one;
    const why = 'can be enforced with one pattern that no declared name matches, and no additionalProperties';
    if (others.length > 0 || (additionalProperties !== undefined && additionalProperties !== false)) {
      throw unsupported('patternProperties', why);
    }
    const name = patternExpression(readPattern(pattern), this.#writer);
    const matches = new RegExp(pattern, 'u');
    if (Object.keys(properties as SchemaObject).some((each) => matches.test(each))) {
      throw unsupported('patternProperties', why);
    }
    return `"\\"" ${name} "\\"" ${colon} ${this.expression(value, depth + 1)}`;
  }
}

/** The names that a schema of names lists; undefined where it says anything else. */
function listedNames(schema: unknown): readonly string[] | undefined {
  if (!isObject(schema)) return undefined;
  const [keyword, ...others] = keywordsOf(omit(schema, 'type'));
  const names = keyword === 'const' ? [schema.const] : keyword === 'enum' ? schema.enum : undefined;
  const areNames = Array.isArray(names) && names.every((name) => typeof name === 'string');
  return others.length === 0 && areNames ? names : undefined;
}

/** The first items, and the schema of the others. Up to draft 7 `items` and `additionalItems` say both. */
function itemsOf(schema: SchemaObject): { readonly prefix: readonly unknown[]; readonly items: unknown } {
  const { items, prefixItems, additionalItems } = schema;
  if (!Array.isArray(items)) {
    return { items, prefix: prefixItems === undefined ? [] : schemaList(schema, 'prefixItems') };
  }
  if (prefixItems !== undefined) throw unsupported('items', 'has to be one schema beside "prefixItems"');
  return { items: additionalItems, prefix: schemaList(schema, 'items') };
}

function tooManyValues(keyword: string): ServiceError {
  const { enumValues, enumChars } = schemaBounds;
  return unsupported(keyword, `a schema may list ${enumValues} values of ${enumChars} characters together`);
}

function isOfType(value: unknown, type: SchemaType): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'number') return typeof value === 'number';
  if (type === 'string') return typeof value === 'string';
  if (type === 'boolean') return typeof value === 'boolean';
  if (type === 'array') return Array.isArray(value);
  return type === 'object' ? isObject(value) : value === null;
}
