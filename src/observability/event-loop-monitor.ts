import type { Clock } from '../lib/clock.ts';
import type { Metrics } from './metrics.ts';

/** A server that does nothing wakes up for each. */
const intervalMs = 100;

/** Measures how late timers of this thread fire, which is how long something held it. Returns what stops it. */
export function startEventLoopMonitor(clock: Clock, metrics: Metrics): () => void {
  let longestMs = 0;
  let dueMs = clock.monotonicMs() + intervalMs;
  let cancel = clock.after(intervalMs, tick);
  function tick(): void {
    const nowMs = clock.monotonicMs();
    const lateMs = Math.max(0, nowMs - dueMs);
    metrics.observe('eventLoopStall', [], lateMs / 1_000);
    if (lateMs > longestMs) {
      longestMs = lateMs;
      metrics.set('eventLoopStallMax', [], lateMs / 1_000);
    }
    dueMs = nowMs + intervalMs;
    cancel = clock.after(intervalMs, tick);
  }
  return () => cancel();
}
