import { valuesAt } from '../../lib/document-path.ts';
import { compareKeys } from '../../lib/key-order.ts';
import type { Hit } from '../execution/hydrate.ts';
import type { JoinOperator, LeftField } from './join-request.ts';

/** A row of the right side of a join. */
export interface RightRow {
  readonly key: string;
  /** JSON object. */
  readonly text: string;
  /** When it was written, milliseconds since 1970; undefined where the text says so itself, or nobody knows. */
  readonly writtenMs?: number | undefined;
}

/** A hit with the rows that were joined to it. */
export interface JoinedRow {
  /** Undefined for a row of the right side that no hit has found. */
  readonly hit: Hit | undefined;
  /** One for each join so far; undefined where a join has found nothing. */
  readonly rights: readonly (RightRow | undefined)[];
}

export type Scalar = string | number | boolean;

/** The scalars of a row at the left field of a join. */
export function leftValues({ hit, rights }: JoinedRow, { join, path }: LeftField): readonly Scalar[] {
  if (join !== undefined) return rightValues(rights[join], path);
  return hit === undefined ? [] : scalarsAt(hit.document, path);
}

export function rightValues(row: RightRow | undefined, path: string): readonly Scalar[] {
  return row === undefined ? [] : scalarsAt(row, path);
}

/** Each document is looked into once for a path, however many rows it belongs to. */
const known = new WeakMap<RightRow, Map<string, readonly Scalar[]>>();

function scalarsAt(document: RightRow, path: string): readonly Scalar[] {
  if (path === '_id') return [document.key];
  const byPath = known.get(document) ?? new Map<string, readonly Scalar[]>();
  known.set(document, byPath);
  const values = byPath.get(path) ?? valuesAt(JSON.parse(document.text), path).filter(isScalar);
  byPath.set(path, values);
  return values;
}

function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** Equal values, and only those, have the same name. */
export function nameOfValue(value: Scalar): string {
  return `${typeof value}:${value}`;
}

/** A key is text; numbers mean the key of their digits. */
export function keyOfValue(value: Scalar): string | undefined {
  return typeof value === 'boolean' ? undefined : String(value);
}

/**
 * Whether two values are in this relation. Values of different types are never; strings are in the order of their code
 * points.
 */
export function isRelated(left: Scalar, operator: JoinOperator, right: Scalar): boolean {
  if (operator === 'neq') return left !== right;
  if (typeof left !== typeof right) return false;
  const order =
    typeof left === 'string' && typeof right === 'string' ? compareKeys(left, right) : Number(left) - Number(right);
  switch (operator) {
    case 'eq':
      return order === 0;
    case 'lt':
      return order < 0;
    case 'lte':
      return order <= 0;
    case 'gt':
      return order > 0;
    case 'gte':
      return order >= 0;
  }
}
