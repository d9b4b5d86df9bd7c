import type { Static, TSchema } from '@sinclair/typebox';
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler';
import type { ValueError } from '@sinclair/typebox/errors';
import { didYouMean } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { dropNulls } from './absent-members.ts';

/**
 * Checks that bytes are one JSON value under the documented policy (UTF-8, no duplicate members, no lone surrogates,
 * bounded depth, numbers that a double keeps). Throws `ServiceError`.
 */
export type ScanJson = (bytes: Uint8Array) => void;

/** Names of a value and its parts in messages. */
interface Said {
  readonly whole: string;
  readonly part: string;
}

const body: Said = { whole: 'the body', part: 'member' };
const utf8 = new TextDecoder();
const compiled = new WeakMap<TSchema, TypeCheck<TSchema>>();

function checkerOf(schema: TSchema): TypeCheck<TSchema> {
  let checker = compiled.get(schema);
  if (checker === undefined) {
    checker = TypeCompiler.Compile(schema);
    compiled.set(schema, checker);
  }
  return checker;
}

/** The value as the schema's type, or `invalid_request` with the path of the first thing that is wrong. */
export function checkValue<Schema extends TSchema>(value: unknown, schema: Schema, said = body): Static<Schema> {
  const checker = checkerOf(schema);
  if (checker.Check(value)) return value as Static<Schema>;
  const first = firstError(checker, value);
  throw new ServiceError(
    'invalid_request',
    first === undefined ? `${said.whole} has the wrong shape` : describe(first, said),
  );
}

/** A large body may have any number of errors. */
const errorsLookedAtMax = 32;

/** The first thing that is wrong; the `type` where that is wrong too, since a value of another kind lacks what it never has. */
function firstError(checker: TypeCheck<TSchema>, value: unknown): ValueError | undefined {
  const first = checker.Errors(value).First();
  if (first?.message !== 'Expected required property') return first;
  const folder = first.path.slice(0, first.path.lastIndexOf('/') + 1);
  let looked = 0;
  for (const error of checker.Errors(value)) {
    if (!error.path.startsWith(folder) || looked === errorsLookedAtMax) break;
    if (error.path === `${folder}type` && error.value !== undefined) return error;
    looked += 1;
  }
  return first;
}

/** Scans, parses, prepares and checks a JSON body. */
export function readJson<Schema extends TSchema>(
  bytes: Uint8Array,
  {
    schema,
    prepare = dropNulls,
  }: { readonly schema: Schema; readonly prepare?: (value: unknown, schema: TSchema) => void },
  scanJson: ScanJson,
): Static<Schema> {
  const value = parseJson(bytes, scanJson);
  prepare(value, schema);
  return checkValue(value, schema);
}

/** Scans and parses JSON bytes, nothing more. */
function parseJson(bytes: Uint8Array, scanJson: ScanJson): unknown {
  scanJson(bytes);
  return JSON.parse(utf8.decode(bytes));
}

function describe(error: ValueError, { whole, part }: Said): string {
  const deepest = deepestOf(error);
  const place = memberPath(deepest.path);
  const at = place === '' ? whole : `${part} "${place}"`;
  const properties: unknown = deepest.schema.properties;
  const known = typeof properties === 'object' && properties !== null ? Object.keys(properties) : [];
  const name = deepest.path.slice(deepest.path.lastIndexOf('/') + 1);
  if (deepest.message === 'Unexpected property') {
    const guess = didYouMean(unescaped(name), known);
    return `unknown ${part} "${place}"${guess === undefined ? '' : `; did you mean "${guess}"?`}`;
  }
  const words = wordsOf(deepest.schema);
  if (words !== undefined) return `${at}: expected ${words}`;
  if (deepest.message === 'Expected required property') return `${part} "${place}" is missing`;
  if (deepest.message === 'Expected union value') return `${at}: expected ${kindsOf(deepest.schema).join(' or ')}`;
  return `${at}: ${deepest.message.charAt(0).toLowerCase()}${deepest.message.slice(1)}`;
}

/** The words that a value may be, where it is a word or a choice of words. */
function wordsOf(schema: TSchema): string | undefined {
  const words = constantsOf(schema);
  return words.length > 0 ? words.map((word) => `"${word}"`).join(' or ') : undefined;
}

/**
 * Of a union, the branch that was meant says the most: the one whose `type` is that of the value, the one that knows most
 * of its members, the one beside `null`, the one that came furthest, or the one for values of this kind.
 */
function deepestOf(error: ValueError): ValueError {
  if (wordsOf(error.schema) !== undefined) return error;
  const typed = typedBranchOf(error) ?? memberBranchOf(error);
  if (typed !== undefined) return typed;
  const branches = error.errors.map((branch) => branch.First());
  const others = branches.filter((branch) => branch !== undefined && branch.schema.type !== 'null');
  const [only] = others;
  if (branches.length === 2 && others.length === 1 && only !== undefined) return deepestOf(only);
  let best = error;
  for (const first of others) {
    if (first === undefined) continue;
    const candidate = deepestOf(first);
    const ofThisKind = best === error && typeof error.value === 'string' && wordsOf(candidate.schema) !== undefined;
    if (candidate.path.length > best.path.length || ofThisKind) best = candidate;
  }
  return best;
}

/** Where all branches that are objects are told apart by a word in `type`. */
function typedBranchOf(error: ValueError): ValueError | undefined {
  const { value } = error;
  const choices: unknown = error.schema.anyOf;
  if (!Array.isArray(choices) || typeof value !== 'object' || value === null || !('type' in value)) return undefined;
  const types = choices.map(({ properties }: TSchema) => properties && constantsOf(properties.type));
  const known = types.flatMap((words) => words ?? []);
  if (known.length === 0 || types.some((words) => words?.length === 0)) return undefined;
  const first = error.errors[types.findIndex((words) => words?.includes(value.type))]?.First();
  if (first !== undefined) return deepestOf(first);
  const words = { ...error.schema, anyOf: known.map((type) => ({ const: type })) };
  return { ...error, path: `${error.path}/type`, schema: words };
}

/** The kinds of values that the schema lets through. */
function kindsOf({ anyOf, type }: TSchema): string[] {
  if (!Array.isArray(anyOf)) return [typeof type === 'string' ? type : 'another value'];
  return [...new Set(anyOf.flatMap(kindsOf))].filter((kind) => kind !== 'null');
}

/** The words that the schema lets through; none where it lets other values through too. */
function constantsOf(schema: TSchema | undefined): unknown[] {
  const choices: unknown = schema?.anyOf ?? [schema];
  const words = Array.isArray(choices) ? choices.map((choice?: TSchema) => choice?.const as unknown) : [];
  return words.every((word) => typeof word === 'string') ? words : [];
}

/** Where one of several kinds of objects has more of the value's members than any other. */
function memberBranchOf({ value, schema, errors }: ValueError): ValueError | undefined {
  const choices: unknown = schema.anyOf;
  if (!Array.isArray(choices) || typeof value !== 'object' || value === null) return undefined;
  const names = Object.keys(value);
  const shared = choices.map(({ properties = {} }: TSchema) => names.filter((name) => Object.hasOwn(properties, name)));
  const most = Math.max(...shared.map(({ length }) => length));
  const [only, ...others] = [...shared.keys()].filter((at) => shared[at]?.length === most);
  if (only === undefined || others.length > 0) return undefined;
  const first = errors[only]?.First();
  return first === undefined ? undefined : deepestOf(first);
}

function memberPath(pointer: string): string {
  return pointer.split('/').slice(1).map(unescaped).join('.').slice(0, 200);
}

function unescaped(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~');
}
