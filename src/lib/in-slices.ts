/** Items that are visited before others get their turn. */
const sliceItems = 2_048;

/** Calls `visit` for 0 to `count` - 1, letting the event loop run between slices: a long loop must not hold it. */
export async function inSlices(count: number, visit: (index: number) => void): Promise<void> {
  for (let start = 0; start < count; start += sliceItems) {
    if (start > 0) await new Promise<void>((resolve) => setImmediate(resolve));
    const end = Math.min(count, start + sliceItems);
    for (let index = start; index < end; index += 1) visit(index);
  }
}
