import type { TaggedEntity } from '../../operations/tag-entities.ts';

/**
 * Of spans that get in each other's way the surest stays: of those at one place always, and of those that overlap, unless
 * `flat` is off and one lies within the other. In the order of the text.
 */
export function withoutConflicts(found: readonly TaggedEntity[], flat: boolean): TaggedEntity[] {
  const kept: TaggedEntity[] = [];
  const starts = [...new Set(found.map(({ start }) => start))].sort((a, b) => a - b);
  const places = new Map(starts.map((start, place) => [start, place]));
  // The kept spans over each place where one starts: of two that overlap, both lie over the start of the later one.
  const over = starts.map((): TaggedEntity[] => []);
  const surest = [...found].sort((a, b) => b.score - a.score || a.start - b.start || a.end - b.end);
  for (const span of surest) {
    const from = places.get(span.start) ?? 0;
    let to = from + 1;
    while (to < starts.length && (starts[to] ?? 0) < span.end) to += 1;
    const under = over.slice(from, to);
    if (under.some((spans) => spans.some((other) => conflict(span, other, flat)))) continue;
    kept.push(span);
    for (const spans of under) spans.push(span);
  }
  return kept.sort((a, b) => a.start - b.start || b.end - a.end);
}

function conflict(a: TaggedEntity, b: TaggedEntity, flat: boolean): boolean {
  if (a.end <= b.start || b.end <= a.start) return false;
  if (flat || (a.start === b.start && a.end === b.end)) return true;
  const within = (inner: TaggedEntity, outer: TaggedEntity) => inner.start >= outer.start && inner.end <= outer.end;
  return !within(a, b) && !within(b, a);
}
