import { anyOf, matchNone, type PlanNode } from '../plan/plan-nodes.ts';
import { phraseSlopMax } from '../query-string/query-string.ts';
import { readFuzziness } from './fuzziness.ts';
import type { NodeScope } from './node-scope.ts';
import type { QueryBudget } from './query-budget.ts';
import {
  asStrings,
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  presentNames,
  readBoolean,
  readBoost,
  readField,
  readInteger,
  readString,
  readStrings,
  requireField,
} from './query-members.ts';

const idsMax = 10_000;
const multiMatchFieldsMax = 64;

export function readMatch(node: Members, { where, budget }: NodeScope): PlanNode {
  checkMembers(node, ['match', 'field', 'path', 'analyzer', 'operator', 'fuzziness', 'prefix_length', 'boost'], where);
  const { field, value, options } = readFieldValue(node, 'match', 'text', where);
  const text = textOf(value, 'match', where, budget);
  const near = nearWords(text, options, where, budget);
  const operator = readString(options, 'operator', where)?.toLowerCase() ?? 'or';
  if (operator !== 'or' && operator !== 'and') throw invalidQuery(where, '"operator" must be "or" or "and"');
  return {
    kind: 'match',
    ...optionalField(field),
    text,
    operator,
    ...analyzerOf(options, where),
    ...near,
    ...boostOf(options, where),
  };
}

export function readMatchPhrase(node: Members, { where, budget }: NodeScope): PlanNode {
  checkMembers(
    node,
    ['match_phrase', 'field', 'path', 'analyzer', 'fuzziness', 'prefix_length', 'slop', 'boost'],
    where,
  );
  const { field, value, options } = readFieldValue(node, 'match_phrase', 'text', where);
  const text = textOf(value, 'match_phrase', where, budget);
  const near = nearWords(text, options, where, budget);
  const slop = readInteger(options, 'slop', { min: 0, max: phraseSlopMax }, where) ?? 0;
  return {
    kind: 'phrase',
    ...optionalField(field),
    text,
    slop,
    ...analyzerOf(options, where),
    ...near,
    ...boostOf(options, where),
  };
}

export function readTerm(node: Members, { where, budget }: NodeScope): PlanNode {
  checkMembers(node, ['term', 'field', 'path', 'fuzziness', 'prefix_length', 'boost'], where);
  const { field, value, options } = readFieldValue(node, 'term', 'value', where);
  const near = readFuzziness(options, where);
  const term = comparedIn(field, value, where);
  if (!near) return { kind: 'term', ...optionalField(field), value: term, ...boostOf(options, where) };
  if (typeof term !== 'string' || term === '') throw invalidQuery(where, 'a term with "fuzziness" must be a word');
  budget.spendExpansion();
  return { kind: 'fuzzy', ...optionalField(field), value: term, ...near, ...boostOf(options, where) };
}

export function readPrefix(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['prefix', 'field', 'path', 'boost'], where);
  const { field, value, options } = readFieldValue(node, 'prefix', 'value', where);
  if (typeof value !== 'string' || value === '')
    throw invalidQuery(where, '"prefix" must be a string with something in it');
  return { kind: 'prefix', ...optionalField(field), value, ...boostOf(options, where) };
}

/** `{"terms": {"field": [...]}}`: one of the values is enough. */
export function readTerms(node: Members, { where, budget }: NodeScope): PlanNode {
  const terms = member(node, 'terms');
  checkMembers(node, ['terms', 'boost'], where);
  if (!isObject(terms)) throw invalidQuery(where, '"terms" must name a field and its values: {"field": ["a", "b"]}');
  const names = presentNames(terms).filter((name) => name !== 'boost' || !isNumber(member(terms, 'boost')));
  const [field] = names;
  const values = field === undefined ? undefined : member(terms, field);
  if (names.length !== 1 || !field || !Array.isArray(values)) {
    throw invalidQuery(where, '"terms" must name one field and its values: {"field": ["a", "b"]}');
  }
  budget.spend(values.length);
  const inner = isNumber(member(terms, 'boost')) ? readBoost(terms, where) : 1;
  const boost = readBoost(node, where) * inner;
  return anyOf(
    values.map((value: unknown) => ({ kind: 'term', field, value: comparedIn(field, value, where), boost })),
  );
}

export function readMultiMatch(node: Members, { where, budget }: NodeScope): PlanNode {
  checkMembers(node, ['multi_match', 'boost'], where);
  const inner = `${where}.multi_match`;
  const body = member(node, 'multi_match');
  if (!isObject(body)) throw invalidQuery(inner, 'must be an object with "query", "type" and "fields"');
  checkMembers(body, ['query', 'fields', 'type', 'boost'], inner);
  const type = readString(body, 'type', inner);
  if (type !== 'bool_prefix') throw invalidQuery(inner, '"type" must be "bool_prefix"');
  const text = readString(body, 'query', inner);
  if (text === undefined || text.trim() === '')
    throw invalidQuery(inner, '"query" must be a text with something in it');
  budget.spendText(text);
  const fields = readStrings(body, 'fields', multiMatchFieldsMax, inner);
  if (!fields || fields.length === 0) throw invalidQuery(inner, '"fields" must name at least one field');
  const boost = readBoost(body, inner) * readBoost(node, where);
  return { kind: 'bool_prefix', fields: fields.map((field) => boostedField(field, inner)), text, boost };
}

export function readIds(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['ids', 'boost'], where);
  return idsNode(member(node, 'ids'), readBoost(node, where), `${where}.ids`);
}

export function readDocId(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['doc_id', 'boost'], where);
  const body = member(node, 'doc_id');
  if (!isObject(body)) throw invalidQuery(`${where}.doc_id`, 'must be an object with "ids"');
  checkMembers(body, ['ids'], `${where}.doc_id`);
  return idsNode(member(body, 'ids'), readBoost(node, where), `${where}.doc_id.ids`);
}

/** `{"bool": true, "field": "f"}`. */
export function readBoolField(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['bool', 'field', 'path', 'boost'], where);
  const value = readBoolean(node, 'bool', where);
  if (value === undefined) throw invalidQuery(where, '"bool" must be true or false');
  return { kind: 'bool_field', field: requireField(node, where), value, ...boostOf(node, where) };
}

export function readExists(node: Members, { where }: NodeScope): PlanNode {
  checkMembers(node, ['exists', 'boost'], where);
  const body = member(node, 'exists');
  if (!isObject(body)) throw invalidQuery(`${where}.exists`, 'must be an object with "field"');
  checkMembers(body, ['field', 'path'], `${where}.exists`);
  return { kind: 'exists', field: requireField(body, `${where}.exists`), ...boostOf(node, where) };
}

interface FieldValue {
  field: string | undefined;
  value: unknown;
  /** The object that holds the remaining members. */
  options: Members;
}

/**
 * The three spellings of a value in a field: `{match: "v", field: "f"}`, `{match: {field: "f", text: "v"}}` and
 * `{match: {f: "v"}}`, where `v` may be an object with the value and its options. The value is called `valueName` in
 * messages; `text`, `value`, `query` and the name of the node are understood in every node.
 */
export function readFieldValue(node: Members, name: string, valueName: string, where: string): FieldValue {
  const inner = member(node, name);
  if (!isObject(inner)) return { field: readField(node, where), value: inner, options: node };
  const at = `${where}.${name}`;
  const spellings = [valueName, name, 'text', 'value', 'query'];
  const spellingIn = (object: Members) => spellings.find((spelling) => member(object, spelling) !== undefined);
  checkMembers(node, [name, 'boost'], where);
  const given = spellingIn(inner);
  const isSpelledOut = given !== undefined && (Object.hasOwn(inner, 'field') || Object.hasOwn(inner, 'path'));
  if (isSpelledOut) {
    checkMembers(inner, ['field', 'path', given, ...optionNames(name)], at);
    return { field: requireField(inner, at), value: member(inner, given), options: mergeBoost(inner, node, at) };
  }
  const names = presentNames(inner);
  const [field] = names;
  if (names.length !== 1 || !field) throw invalidQuery(at, `must name one field and its value: {"field": "value"}`);
  const value = member(inner, field);
  if (!isObject(value)) return { field, value, options: node };
  const spelling = spellingIn(value);
  if (spelling === undefined) throw invalidQuery(`${at}.${field}`, `needs a "${valueName}"`);
  checkMembers(value, [spelling, ...optionNames(name)], `${at}.${field}`);
  return { field, value: member(value, spelling), options: mergeBoost(value, node, at) };
}

function optionNames(name: string): string[] {
  if (name === 'match') return ['analyzer', 'operator', 'fuzziness', 'prefix_length', 'boost'];
  if (name === 'fuzzy') return ['fuzziness', 'prefix_length', 'boost'];
  if (name === 'match_phrase') return ['analyzer', 'fuzziness', 'prefix_length', 'slop', 'boost'];
  return name === 'term' ? ['fuzziness', 'prefix_length', 'boost'] : ['boost'];
}

function mergeBoost(inner: Members, outer: Members, where: string): Members {
  return { ...inner, boost: readBoost(inner, where) * readBoost(outer, where) };
}

/** Each word that may be misspelt is a walk through the words of the index. */
function nearWords(
  text: string,
  options: Members,
  where: string,
  budget: QueryBudget,
): ReturnType<typeof readFuzziness> {
  const near = readFuzziness(options, where);
  if (near) budget.spendExpansion(text.trim().split(/\s+/).length);
  return near;
}

function textOf(value: unknown, name: string, where: string, budget: QueryBudget): string {
  if (typeof value === 'string') {
    budget.spendText(value);
    return value;
  }
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw invalidQuery(where, `"${name}" must be a text`);
}

/** A key is text; numbers mean the key of their digits, as in joins. */
function comparedIn(field: string | undefined, value: unknown, where: string): string | number | boolean {
  if (typeof value === 'number') return field === '_id' ? String(value) : value;
  if (typeof value === 'string' || typeof value === 'boolean') return value;
  throw invalidQuery(where, 'a term must be a string, a number, true or false');
}

function analyzerOf(options: Members, where: string): { analyzer?: string } {
  const analyzer = readString(options, 'analyzer', where);
  return analyzer === undefined ? {} : { analyzer };
}

export function boostOf(options: Members, where: string): { boost: number } {
  return { boost: readBoost(options, where) };
}

export function optionalField(field: string | undefined): { field?: string } {
  return field === undefined ? {} : { field };
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

/** `title^2`: a field with what its score is multiplied by. */
function boostedField(text: string, where: string): { field: string; boost: number } {
  const caret = text.lastIndexOf('^');
  const field = caret < 0 ? text : text.slice(0, caret);
  const factor = caret < 0 ? '1' : text.slice(caret + 1);
  if (field === '' || !/^\d{1,9}(\.\d{1,9})?$/.test(factor)) {
    throw invalidQuery(where, `"${text.slice(0, 64)}" is not a field, or a field with a boost such as title^2`);
  }
  return { field, boost: Number(factor) };
}

function idsNode(value: unknown, boost: number, where: string): PlanNode {
  const ids = asStrings(value, idsMax, where);
  return ids.length === 0 ? matchNone : { kind: 'ids', ids, boost };
}
