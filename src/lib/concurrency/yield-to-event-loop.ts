/** Items that are visited before the loop yields to others, where each is little work. */
const sliceItems = 2_048;

/** Calls `visit` for 0 to `count` - 1, letting the event loop run between slices: a long loop must not hold it. */
export async function forEachYielding(
  count: number,
  visit: (index: number) => void,
  items = sliceItems,
): Promise<void> {
  for (let start = 0; start < count; start += items) {
    if (start > 0) await yieldToEventLoop();
    const end = Math.min(count, start + items);
    for (let index = start; index < end; index += 1) visit(index);
  }
}

let lastTurn: Promise<void> = Promise.resolve();

/**
 * Lets the event loop run once: messages, aborts and other requests come in. Loops that yield go on in turn, one in
 * each run: however many they are, a request that comes meanwhile waits for one slice at a time, and not for a slice of
 * each.
 */
export function yieldToEventLoop(): Promise<void> {
  lastTurn = lastTurn.then(runOnce);
  return lastTurn;
}

function runOnce(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
