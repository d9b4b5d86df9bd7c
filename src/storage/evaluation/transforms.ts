import { ServiceError } from '../../protocol/service-error.ts';

/** One in-place update, as validated at the edge. */
export interface TransformOperation {
  op: string;
  path: string;
  value?: unknown;
}

type Members = Record<string, unknown>;

/** How many operations took effect, and how many did not fit what they found. The others had nothing to do. */
interface OperationCounts {
  applied: number;
  unfit: number;
}

/**
 * Applies the operations in order to a parsed document. An operation that does not fit what it finds (a number added
 * to a string, a path through a scalar, a result that is not finite) is left out; the others still happen.
 * `timestamp` is the request's RFC 3339 instant. Fails with `number_out_of_range` where integers would be rounded.
 */
export function applyOperations(
  document: Members,
  operations: readonly TransformOperation[],
  timestamp: string,
): OperationCounts {
  const counts: OperationCounts = { applied: 0, unfit: 0 };
  for (const operation of operations) {
    const target = valueAt(document, pathSegments(operation.path));
    if (applyOne(document, operation, timestamp)) counts.applied += 1;
    else if (target !== absent || !takesAway.has(operation.op)) counts.unfit += 1;
  }
  return counts;
}

/** Operations that have nothing to do where there is nothing. */
const takesAway: ReadonlySet<string> = new Set(['$unset', '$rename', '$pull', '$pop']);

function valueAt(document: Members, segments: readonly string[]): unknown {
  const parent = parentOf(document, segments, false);
  return parent === undefined ? absent : member(parent, last(segments));
}

/** Path segments of `$.a.b` or `a.b`. */
function pathSegments(path: string): string[] {
  const bare = path.startsWith('$.') ? path.slice(2) : path;
  return bare.split('.');
}

function applyOne(document: Members, operation: TransformOperation, timestamp: string): boolean {
  const segments = pathSegments(operation.path);
  const { value } = operation;
  switch (operation.op) {
    case '$set':
      return replace(document, segments, () => value);
    case '$currentDate':
      return replace(document, segments, () => timestamp);
    case '$unset':
      return remove(document, segments) !== absent;
    case '$rename':
      return typeof value === 'string' && rename(document, segments, pathSegments(value));
    case '$inc':
      return arithmetic(document, operation, {
        ofNumbers: (held, operand) => held + operand,
        ofIntegers: (held, operand) => held + operand,
      });
    case '$mul':
      return arithmetic(document, operation, {
        ofNumbers: (held, operand) => held * operand,
        ofIntegers: (held, operand) => held * operand,
      });
    case '$min':
      return keepExtreme(document, segments, value, -1);
    case '$max':
      return keepExtreme(document, segments, value, 1);
    case '$push':
      return changeArray(document, segments, true, (held) => [...held, value]);
    case '$addToSet':
      return changeArray(document, segments, true, (held) =>
        held.some((element) => jsonEquals(element, value)) ? held : [...held, value],
      );
    case '$pull':
      return changeArray(document, segments, false, (held) => held.filter((element) => !jsonEquals(element, value)));
    case '$pop':
      return changeArray(document, segments, false, (held) => (value === -1 ? held.slice(1) : held.slice(0, -1)));
    default:
      return false;
  }
}

/** Stands for "there is no such member", which is not the same as null. */
const absent = Symbol('absent');

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function member(parent: Members, name: string): unknown {
  return Object.hasOwn(parent, name) ? parent[name] : absent;
}

/** Plain assignment of `__proto__` would change the object's prototype instead of adding a member. */
function assign(parent: Members, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(parent, name, { value, enumerable: true, configurable: true, writable: true });
  } else parent[name] = value;
}

/** The object that holds the last segment; made with its parents when `create`. */
function parentOf(document: Members, segments: readonly string[], create: boolean): Members | undefined {
  let current = document;
  for (const name of segments.slice(0, -1)) {
    let next = member(current, name);
    if (next === absent) {
      if (!create) return undefined;
      next = {};
      assign(current, name, next);
    }
    if (!isMembers(next)) return undefined;
    current = next;
  }
  return current;
}

/** True when the way to the last segment is free: objects, or nothing yet, all along. */
function isReachable(document: Members, segments: readonly string[]): boolean {
  let current: unknown = document;
  for (const name of segments.slice(0, -1)) {
    if (!isMembers(current)) return false;
    current = member(current, name);
    if (current === absent) return true;
  }
  return isMembers(current);
}

function last(segments: readonly string[]): string {
  return segments[segments.length - 1] ?? '';
}

/** Puts what `make` returns for the held value; `absent` from it means that the operation does not fit. */
function replace(document: Members, segments: readonly string[], make: (held: unknown) => unknown): boolean {
  if (!isReachable(document, segments)) return false;
  const existing = parentOf(document, segments, false);
  const value = make(existing === undefined ? absent : member(existing, last(segments)));
  if (value === absent) return false;
  const parent = existing ?? parentOf(document, segments, true);
  if (!parent) return false;
  assign(parent, last(segments), value);
  return true;
}

function remove(document: Members, segments: readonly string[]): unknown {
  const parent = parentOf(document, segments, false);
  const held = parent === undefined ? absent : member(parent, last(segments));
  if (parent && held !== absent) delete parent[last(segments)];
  return held;
}

/** Moves a member. The target is checked without the source, which may lie on its way. */
function rename(document: Members, from: readonly string[], to: readonly string[]): boolean {
  const value = remove(document, from);
  if (value === absent) return false;
  if (replace(document, to, () => value)) return true;
  replace(document, from, () => value);
  return false;
}

/** Beyond it, integers of a double are rounded. */
export const integerMax = 2 ** 53;

function isCount(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) <= integerMax;
}

function isWithin(value: bigint): boolean {
  return value >= -BigInt(integerMax) && value <= BigInt(integerMax);
}

interface Computation {
  ofNumbers(held: number, operand: number): number;
  /** The same without rounding. */
  ofIntegers(held: bigint, operand: bigint): bigint;
}

function arithmetic(
  document: Members,
  { op, path, value: operand }: TransformOperation,
  { ofNumbers, ofIntegers }: Computation,
): boolean {
  if (typeof operand !== 'number') return false;
  return replace(document, pathSegments(path), (held) => {
    const base = held === absent ? 0 : held;
    if (typeof base !== 'number') return absent;
    const result = ofNumbers(base, operand);
    // A double of 2^53 may be a sum that was rounded to it.
    const isInDoubt = isCount(base) && isCount(operand) && !Number.isSafeInteger(result);
    if (isInDoubt && !isWithin(ofIntegers(BigInt(base), BigInt(operand)))) {
      throw new ServiceError(
        'number_out_of_range',
        `${op} would take "${path}" from ${base} beyond 2^53, where integers are rounded`,
      );
    }
    return Number.isFinite(result) ? result : absent;
  });
}

/** Numbers compare as numbers, strings by code point; other kinds and mixtures do not fit. */
function keepExtreme(document: Members, segments: readonly string[], value: unknown, direction: 1 | -1): boolean {
  return replace(document, segments, (held) => {
    if (held === absent) return value;
    if (typeof held === 'number' && typeof value === 'number') {
      return (value - held) * direction > 0 ? value : held;
    }
    if (typeof held === 'string' && typeof value === 'string') {
      return Buffer.from(value).compare(Buffer.from(held)) * direction > 0 ? value : held;
    }
    return absent;
  });
}

function changeArray(
  document: Members,
  segments: readonly string[],
  create: boolean,
  change: (held: unknown[]) => unknown[],
): boolean {
  return replace(document, segments, (held) => {
    if (held === absent) return create ? change([]) : absent;
    return Array.isArray(held) ? change(held) : absent;
  });
}

/** Equality of JSON values: member order does not matter, element order does. */
export function jsonEquals(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((element, index) => jsonEquals(element, right[index]))
    );
  }
  if (!isMembers(left) || !isMembers(right)) return false;
  const names = Object.keys(left);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && jsonEquals(left[name], right[name]))
  );
}
