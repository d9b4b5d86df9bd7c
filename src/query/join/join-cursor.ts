import { compareKeys } from '../../lib/key-order.ts';
import type { CursorPosition } from '../execution/page-cursor.ts';
import { invalidQuery } from '../nodes/query-members.ts';
import type { PlanCursor } from '../plan/native-plan.ts';
import type { JoinedRow } from './joined-row.ts';

/**
 * Where a joined row stands: the hit before its own, after which the search goes on, so that the rows of its own hit come
 * again and those that were shown can be left out.
 */
interface JoinPosition {
  /** Undefined for the first hit. */
  readonly previous: CursorPosition | undefined;
  readonly hit: string;
  /** Keys of the joined rows; null where a join has found nothing. */
  readonly rights: readonly (string | null)[];
}

export function positionOf(row: JoinedRow, previous: CursorPosition | undefined): CursorPosition | undefined {
  if (row.hit === undefined) return undefined;
  const { key } = row.hit.document;
  const rights = row.rights.map((right) => right?.key ?? null);
  return { position: JSON.stringify([previous?.position ?? null, previous?.key ?? null, rights]), key };
}

/** Reads what `positionOf` has made. */
export function readPosition({ position, key, before }: PlanCursor): JoinPosition {
  if (before) throw invalidQuery('search_before', 'cannot go with "join": page with "search_after"');
  const [previousPosition, previousKey, rights] = JSON.parse(position) as [string | null, string | null, string[]];
  const previous =
    previousPosition === null || previousKey === null ? undefined : { position: previousPosition, key: previousKey };
  return { previous, hit: key, rights };
}

/** Whether the row was shown before: it is of the same hit, and not behind the position. */
export function wasShown({ hit, rights }: JoinedRow, at: JoinPosition): boolean {
  if (hit?.document.key !== at.hit) return false;
  for (const [index, right] of rights.entries()) {
    const [own, shown] = [right?.key ?? '', at.rights[index] ?? ''];
    const order = compareKeys(own, shown);
    if (order !== 0) return order < 0;
  }
  return true;
}
