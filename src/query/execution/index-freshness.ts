import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { type Clock, pause } from '../../lib/clock.ts';

/** How long a search waits for rows that were written before it, so that its answer does not contradict itself. */
const consistencyWaitMs = 1_000;

/** How far the indexes of a search show what its ranges hold; sequences are one for each range. */
export interface IndexFreshness {
  /** Everything that is committed now, as a lookup would see it. */
  heads(): number[];
  /** The sequence that each of the indexes shows now. */
  shown(): number[];
  /** Upper bound of the documents that match in the indexes at `shown` and do not match what is stored, at `heads` or later. */
  removedSince(shown: readonly number[], heads: readonly number[]): number;
  /** Every index shows what its range held when it was opened. */
  hasReplayed(): boolean;
  /** No index lacks anything because it was damaged. */
  isWhole(): boolean;
  /** Waits for a moment until everything up to `heads` is shown; false when it is not by then. */
  waitUntilShown(heads: readonly number[]): Promise<boolean>;
}

export interface SearchedIndexes {
  ranges: readonly IndexedRange[];
  /** Indexes of each of the ranges. */
  names: readonly string[];
  clock: Clock;
  /** Asked for its signal by a wait only: many callers make one on demand. */
  caller: { readonly signal: AbortSignal };
}

/** Its waits are a part of what is left of the query's time. */
export function freshnessOf(searched: SearchedIndexes, deadline?: { readonly leftMs: number }): IndexFreshness {
  const { ranges, names } = searched;
  const shown = () => ranges.map((range) => range.shownBy(names));
  return {
    heads: () => committedHeads(ranges),
    shown,
    removedSince: (sequences, heads) =>
      ranges.reduce((removals, range, at) => {
        const untold = Math.max(0, (heads[at] ?? 0) - range.head);
        return removals + range.removalsAfter(sequences[at] ?? 0) + untold;
      }, 0),
    hasReplayed: () => hasReplayed(searched),
    isWhole: () => names.every((name) => ranges.every((range) => range.isWhole(name))),
    async waitUntilShown(heads) {
      if (isAtLeast(shown(), heads)) return true;
      await waitUntilShown(searched, heads, Math.min(consistencyWaitMs, deadline?.leftMs ?? consistencyWaitMs));
      return isAtLeast(shown(), heads);
    },
  };
}

/** Everything that is committed now. */
export function committedHeads(ranges: readonly IndexedRange[]): number[] {
  return ranges.map(({ stored }) => stored.committedHead());
}

export function isAtLeast(shown: readonly number[], heads: readonly number[]): boolean {
  return heads.every((head, at) => (shown[at] ?? 0) >= head);
}

export function hasReplayed({ ranges, names }: Pick<SearchedIndexes, 'ranges' | 'names'>): boolean {
  return names.every((name) => ranges.every((range) => range.applier(name)?.hasReplayed === true));
}

/** Resolves when every index has replayed, or `waitMs` have passed. */
export function waitUntilReplayed(searched: SearchedIndexes, waitMs: number): Promise<void> {
  return waitForAll(searched, waitMs, (range, name, signal) => range.applier(name)?.whenReplayed(signal));
}

/** Resolves when every index is open and shows everything up to `heads`, or `waitMs` have passed. */
export function waitUntilShown(searched: SearchedIndexes, heads: readonly number[], waitMs: number): Promise<void> {
  const headOf = new Map(searched.ranges.map((range, at) => [range, heads[at] ?? 0]));
  return waitForAll(searched, waitMs, async (range, name, signal) => {
    await range.applier(name)?.whenReplayed(signal);
    await range.applier(name)?.waitFor(headOf.get(range) ?? 0, signal);
  });
}

/** Waits for one thing of each index of each range. The caller looks again: a wait that fails or times out is not reported. */
async function waitForAll(
  { ranges, names, clock, caller }: SearchedIndexes,
  waitMs: number,
  wait: (range: IndexedRange, name: string, signal: AbortSignal) => Promise<unknown> | undefined,
): Promise<void> {
  if (waitMs <= 0) return;
  const done = new AbortController();
  const bound = AbortSignal.any([caller.signal, done.signal]);
  const waits = ranges.flatMap((range) => names.map((name) => wait(range, name, bound)));
  await Promise.race([Promise.allSettled(waits), pause(clock, waitMs, bound)]);
  done.abort();
}
