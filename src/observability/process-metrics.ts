import { readdirSync } from 'node:fs';
import type { Clock } from '../lib/clock.ts';
import type { Metrics } from './metrics.ts';

/** Fills the metrics of the process itself at every scrape. */
export function addProcessMetrics(
  metrics: Metrics,
  clock: Clock,
  version: string,
  descriptorLimit: () => number | undefined,
): void {
  metrics.set('buildInfo', [version, Bun.version], 1);
  metrics.set('processStart', [], Math.round((clock.nowMs() - process.uptime() * 1_000) / 10) / 100);
  metrics.onCollect(() => {
    const { user, system } = process.cpuUsage();
    // The kernel counts; the counter starts again with its total at every scrape.
    metrics.clear('processCpu');
    metrics.increment('processCpu', [], (user + system) / 1e6);
    metrics.set('processMemory', [], process.memoryUsage.rss());
    const descriptorsMax = descriptorLimit();
    if (descriptorsMax !== undefined) metrics.set('processDescriptorsMax', [], descriptorsMax);
    const descriptors = openDescriptors();
    if (descriptors !== undefined) metrics.set('processDescriptors', [], descriptors);
  });
}

/** Undefined where the system does not tell. */
function openDescriptors(): number | undefined {
  try {
    // The list has one for itself.
    return readdirSync('/proc/self/fd').length - 1;
  } catch {
    return undefined;
  }
}
