import type { IndexedRange } from '../../indexing/indexed-range.ts';

/** Keys of deleted documents, with the sequence of each range up to which edges to them are gone. */
export function removedTargetsOf(ranges: readonly IndexedRange[]): Record<string, number[]> {
  const removed: Record<string, number[]> = Object.create(null);
  for (const range of ranges) {
    for (const { through, keys } of range.removedTargets.all().values()) {
      for (const key of keys) {
        const known = removed[key];
        removed[key] = ranges.map((_, at) => Math.max(through[at] ?? 0, known?.[at] ?? 0));
      }
    }
  }
  return removed;
}
