const pollMs = 25;
/** Long, because a process that others keep from running looks idle for a while. */
const quietMs = 3_000;
/** Share of a core below which a process counts as idle. */
const idleShare = 0.1;
const busyUsMin = 20_000;

/**
 * Waits until a process has used next to no processor time for three seconds, which is when indexes that are built in the
 * background are done. Answers when it was last busy, on the clock of `performance.now`. `cpuUs` tells the time used.
 */
export async function untilIdle(cpuUs: () => number): Promise<number> {
  let lastBusy = performance.now();
  let usedThen = cpuUs();
  for (;;) {
    await Bun.sleep(pollMs);
    const now = performance.now();
    const used = cpuUs();
    // So little says nothing yet: a timer does that.
    if (used - usedThen > Math.max(busyUsMin, (now - lastBusy) * 1_000 * idleShare)) {
      lastBusy = now;
      usedThen = used;
    }
    if (now - lastBusy >= quietMs) return lastBusy;
  }
}
