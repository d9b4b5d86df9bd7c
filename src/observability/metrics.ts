import { Metric } from './metric.ts';
import { type MetricName, metricDefinitions } from './metric-definitions.ts';

/** All metrics, and their text form (Prometheus exposition format 0.0.4). */
export class Metrics {
  readonly #metrics = metricsByName();
  readonly #collectors: (() => void)[] = [];

  /** Called before every scrape, to refresh gauges. */
  onCollect(collect: () => void): void {
    this.#collectors.push(collect);
  }

  increment(name: MetricName, labels: readonly string[] = [], by = 1): void {
    this.#metrics[name].add(labels, by);
  }

  set(name: MetricName, labels: readonly string[], value: number): void {
    this.#metrics[name].set(labels, value);
  }

  /** Adds one observation to a histogram, in the unit of its name. */
  observe(name: MetricName, labels: readonly string[], value: number): void {
    this.#metrics[name].observe(labels, value);
  }

  /** Forgets every series, before a collector fills it again: what is gone must not linger. */
  clear(name: MetricName): void {
    this.#metrics[name].clear();
  }

  render(): string {
    for (const collect of this.#collectors) collect();
    const texts = Object.values(this.#metrics).map((metric) => metric.render());
    return `${texts.join('\n\n')}\n`;
  }
}

function metricsByName(): Record<MetricName, Metric> {
  const entries = Object.entries(metricDefinitions).map(([name, definition]) => [name, new Metric(definition)]);
  return Object.fromEntries(entries) as Record<MetricName, Metric>;
}
