import type { TSchema } from '@sinclair/typebox';

type Json = Record<string, unknown>;

/**
 * Schemas of an OpenAPI document: every object with members becomes a component, and is referred to by its name. An
 * exported schema of the protocol has the name of its constant; one that is written inside another has the name of that
 * one and its member.
 */
export class OpenApiSchemas {
  readonly #names = new Map<string, string>();
  readonly #components = new Map<string, Json>();

  /** `modules` are modules of the protocol: their exported schemas are known by name. */
  constructor(modules: readonly Readonly<Record<string, unknown>>[]) {
    for (const module of modules) {
      for (const [name, value] of Object.entries(module)) {
        if (isShape(value)) this.#names.set(identityOf(value), pascalCase(name.replace(/(?<=.)Schema$/, '')));
      }
    }
  }

  /** The components so far, by name. */
  get components(): Json {
    return Object.fromEntries([...this.#components].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  add(name: string, schema: Json): void {
    this.#components.set(name, schema);
  }

  /** The schema in the dialect of OpenAPI 3.1; `name` is for a shape that has none of its own. */
  render(schema: TSchema | Json, name: string): Json {
    if (!isShape(schema)) return this.#renderMembers(schema as Json, name);
    const identity = identityOf(schema);
    const own = this.#names.get(identity) ?? this.#fresh(name);
    this.#names.set(identity, own);
    if (!this.#components.has(own)) {
      this.#components.set(own, {});
      this.#components.set(own, this.#renderMembers(schema, own));
    }
    return { $ref: `#/components/schemas/${own}` };
  }

  #renderMembers(schema: Json, name: string): Json {
    const words = wordsOf(schema);
    if (words !== undefined) return words;
    const rendered: Json = {};
    for (const [member, value] of Object.entries(schema)) {
      if (member === 'properties') {
        const properties = Object.entries(value as Record<string, Json>);
        rendered.properties = Object.fromEntries(
          properties.map(([property, each]) => [property, this.render(each, name + pascalCase(property))]),
        );
      } else if (member === 'patternProperties') {
        // TypeBox writes a map of any names so.
        const [each = {}] = Object.values(value as Record<string, Json>);
        rendered.additionalProperties = this.render(each, `${name}Value`);
      } else if (member === 'items' && Array.isArray(value)) {
        rendered.prefixItems = value.map((each: Json, at) => this.render(each, `${name}${at + 1}`));
      } else if (member === 'items') {
        rendered.items = this.render(value as Json, `${name}Item`);
      } else if (member === 'anyOf' || member === 'allOf') {
        const branches = value as Json[];
        const one = branches.filter(({ type }) => type === 'object' || type === 'array').length === 1;
        rendered[member] = branches.map((each, at) => this.render(each, one ? name : name + branchName(each, at)));
      } else if (member === 'documentedPattern') {
        rendered.pattern = value;
      } else if (member !== 'additionalItems') {
        rendered[member] = value;
      }
    }
    return rendered;
  }

  #fresh(name: string): string {
    if (!this.#components.has(name)) return name;
    for (let number = 2; ; number += 1) if (!this.#components.has(name + number)) return name + number;
  }
}

export function pascalCase(text: string): string {
  return text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** An object with members; maps and values are not worth a name. */
function isShape(value: unknown): value is Json {
  if (typeof value !== 'object' || value === null || !('properties' in value)) return false;
  return Object.keys(value.properties as object).length > 0;
}

/** Equal schemas have equal texts; what makes a member optional is a symbol, which no text has. */
function identityOf(schema: object): string {
  return JSON.stringify(schema);
}

/** A choice of words is an enumeration. */
function wordsOf(schema: Json): Json | undefined {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length === 0) return undefined;
  const words = anyOf.map((choice: Json) => choice.const);
  return words.every((word) => typeof word === 'string') ? { ...rest, type: 'string', enum: words } : undefined;
}

function branchName(branch: Json, at: number): string {
  const type = (branch.properties as Record<string, Json> | undefined)?.type?.const;
  return typeof type === 'string' ? pascalCase(type) : `Option${at + 1}`;
}
