export interface SliceBounds {
  readonly items: number;
  readonly bytes: number;
}

/** Cuts a list into runs that keep both bounds, in its order; an item that is larger than `bytes` is a run by itself. */
export function* slicesWithin<Item>(
  list: Iterable<Item>,
  bytesOf: (item: Item) => number,
  bounds: SliceBounds,
): Generator<Item[]> {
  let slice: Item[] = [];
  let bytes = 0;
  for (const item of list) {
    const size = bytesOf(item);
    if (slice.length > 0 && (slice.length >= bounds.items || bytes + size > bounds.bytes)) {
      yield slice;
      slice = [];
      bytes = 0;
    }
    slice.push(item);
    bytes += size;
  }
  if (slice.length > 0) yield slice;
}
