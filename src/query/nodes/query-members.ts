import { suggestion } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** An object of a request that has been parsed from JSON and not yet understood. */
export type Members = Record<string, unknown>;

export function invalidQuery(where: string, what: string): ServiceError {
  return new ServiceError('invalid_query', `${where}: ${what}`);
}

export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member of the object's own; `null` counts as absent. */
export function member(object: Members, name: string): unknown {
  if (!Object.hasOwn(object, name)) return undefined;
  const value = object[name];
  return value === null ? undefined : value;
}

/** Names of the members that are there. */
export function presentNames(object: Members): string[] {
  return Object.keys(object).filter((name) => object[name] !== null);
}

/** Refuses members outside `known`; one that is null is not there. */
export function checkMembers(object: Members, known: readonly string[], where: string): void {
  for (const name of presentNames(object)) {
    if (known.includes(name)) continue;
    const shown = name.length > 64 ? `${name.slice(0, 64)}...` : name;
    throw invalidQuery(where, `unknown member "${shown}".${suggestion(name, known)}`);
  }
}

export function readString(object: Members, name: string, where: string): string | undefined {
  const value = member(object, name);
  if (value === undefined || typeof value === 'string') return value;
  throw invalidQuery(where, `"${name}" must be a string`);
}

export function readBoolean(object: Members, name: string, where: string): boolean | undefined {
  const value = member(object, name);
  if (value === undefined || typeof value === 'boolean') return value;
  throw invalidQuery(where, `"${name}" must be true or false`);
}

/** An integer between `min` and `max`. */
export function readInteger(
  object: Members,
  name: string,
  bounds: { min: number; max: number },
  where: string,
): number | undefined {
  const value = member(object, name);
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= bounds.min && value <= bounds.max) return value;
  throw invalidQuery(where, `"${name}" must be an integer from ${bounds.min} to ${bounds.max}`);
}

/** A number between `min` and `max`. */
export function readNumber(
  object: Members,
  name: string,
  bounds: { min: number; max: number },
  where: string,
): number | undefined {
  const value = member(object, name);
  if (value === undefined) return undefined;
  if (typeof value === 'number' && value >= bounds.min && value <= bounds.max) return value;
  const ends = [
    bounds.min > -Number.MAX_VALUE ? `from ${bounds.min}` : '',
    bounds.max < Number.MAX_VALUE ? `to ${bounds.max}` : '',
  ];
  throw invalidQuery(where, [`"${name}" must be a number`, ...ends].filter((part) => part !== '').join(' '));
}

export function readStrings(object: Members, name: string, max: number, where: string): string[] | undefined {
  const value = member(object, name);
  return value === undefined ? undefined : asStrings(value, max, where === '' ? name : `${where}.${name}`);
}

/** The value as a list of at most `max` strings. */
export function asStrings(value: unknown, max: number, where: string): string[] {
  if (!Array.isArray(value)) throw invalidQuery(where, 'must be an array of strings');
  if (value.length > max) throw new ServiceError('limit_exceeded', `${where}: has at most ${max} entries`);
  return value.map((entry: unknown) => {
    if (typeof entry === 'string') return entry;
    throw invalidQuery(where, 'must be an array of strings');
  });
}

/** The path that a node speaks of: `field`, or `path` as a JSON pointer. */
export function readField(object: Members, where: string): string | undefined {
  const field = readString(object, 'field', where);
  const pointer = readString(object, 'path', where);
  if (field !== undefined && pointer !== undefined) throw invalidQuery(where, 'give "field" or "path", not both');
  if (pointer !== undefined) return pointerField(pointer, where);
  if (field === '') throw invalidQuery(where, '"field" must not be empty');
  return field;
}

export function requireField(object: Members, where: string): string {
  const field = readField(object, where);
  if (field === undefined) throw invalidQuery(where, 'needs a "field"');
  return field;
}

export function readBoost(object: Members, where: string): number {
  const boost = member(object, 'boost') ?? 1;
  if (typeof boost === 'number' && boost >= 0 && boost <= 1e9) return boost;
  throw invalidQuery(where, '"boost" must be a number from 0 on');
}

/** RFC 6901: `/a/b` is the path `a.b`. */
function pointerField(pointer: string, where: string): string {
  if (!pointer.startsWith('/') || pointer === '/') {
    throw invalidQuery(where, '"path" must be a JSON pointer such as /author/name');
  }
  return pointer
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.');
}
