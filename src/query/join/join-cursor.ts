import { compareKeys } from '../../lib/key-order.ts';
import type { CursorPosition } from '../execution/page-cursor.ts';
import type { PlanCursor } from '../plan/native-plan.ts';
import type { RowPlace, SortKey } from './joined-order.ts';
import type { JoinedRow } from './joined-row.ts';

/**
 * Where a joined row stands: the hit before its own, after which the search goes on, so that the rows of its own hit come
 * again and those that were shown can be left out; and its place among all rows, for pages that need all of them.
 */
export interface JoinPosition {
  /** Undefined for the first hit. */
  readonly previous: CursorPosition | undefined;
  /** The hit before its own is known: the page may be filled by going on from there. */
  readonly isReached: boolean;
  readonly place: RowPlace;
}

type Sealed = [
  previousPosition: string | null,
  previousKey: string | null,
  rights: (string | null)[],
  keys: SortKey[],
  isReached: boolean,
];

/** `previous`: the hit before the row's own, undefined for the first one; null where it is not known. */
export function positionOf(place: RowPlace, previous: CursorPosition | undefined | null): CursorPosition {
  const { keys, hit = noKey, rights } = place;
  const sealed: Sealed = [previous?.position ?? null, previous?.key ?? null, [...rights], [...keys], previous !== null];
  return { position: JSON.stringify(sealed), key: hit };
}

/** Of a row without a hit: no document has it. */
const noKey = '';

/** Reads what `positionOf` has made. */
export function readPosition({ position, key }: PlanCursor): JoinPosition {
  const [previousPosition, previousKey, rights, keys, isReached] = JSON.parse(position) as Sealed;
  const previous =
    previousPosition === null || previousKey === null ? undefined : { position: previousPosition, key: previousKey };
  return { previous, isReached, place: { keys, hit: key === noKey ? undefined : key, rights } };
}

/** Whether the row was shown before: it is of the same hit, and not behind the position. */
export function wasShown({ hit, rights }: JoinedRow, { place }: JoinPosition): boolean {
  if (hit?.document.key !== place.hit) return false;
  for (const [index, right] of rights.entries()) {
    const [own, shown] = [right?.key ?? '', place.rights[index] ?? ''];
    const order = compareKeys(own, shown);
    if (order !== 0) return order < 0;
  }
  return true;
}
