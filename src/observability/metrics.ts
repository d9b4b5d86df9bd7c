import { assert } from '../lib/assert.ts';
import { type MetricDefinition, type MetricName, metricDefinitions } from './metric-definitions.ts';
import { HistogramSeries, labelText, ValueSeries } from './metric-series.ts';

/** Takes observations in the unit of the histogram's name. */
export interface Observer {
  observe(value: number): void;
}

type Series = ValueSeries | HistogramSeries;

/** Stands between the values of labels in the key of a series. */
const labelSeparator = '\u0000';

/**
 * The registry of all metrics, and their text form (Prometheus exposition format 0.0.4). The usual client library keeps five
 * functions for each series and checks the labels at each observation: two kilobytes for a table, and a third of the
 * processor time of a small request.
 */
export class Metrics {
  readonly #metrics = new Map<MetricName, Map<string, Series>>();
  readonly #collectors: (() => void)[] = [];

  constructor() {
    for (const name of Object.keys(metricDefinitions) as MetricName[]) {
      this.#metrics.set(name, new Map());
      this.clear(name);
    }
  }

  /** Called before every scrape, to refresh gauges. */
  onCollect(collect: () => void): void {
    this.#collectors.push(collect);
  }

  increment(name: MetricName, labels: readonly string[] = [], by = 1): void {
    (this.#at(name, labels) as ValueSeries).add(by);
  }

  set(name: MetricName, labels: readonly string[], value: number): void {
    (this.#at(name, labels) as ValueSeries).set(value);
  }

  /** One series of a histogram, for a path too hot to look it up at each observation. */
  observer(name: MetricName, labels: readonly string[]): Observer {
    return this.#at(name, labels) as HistogramSeries;
  }

  /** Adds one observation to a histogram, in the unit of its name. */
  observe(name: MetricName, labels: readonly string[], value: number): void {
    (this.#at(name, labels) as HistogramSeries).observe(value);
  }

  /** Forgets the series for whose first label `isGone` holds. */
  forget(name: MetricName, isGone: (label: string) => boolean): void {
    const all = this.#seriesOf(name);
    for (const key of all.keys()) {
      const end = key.indexOf(labelSeparator);
      if (isGone(end === -1 ? key : key.slice(0, end))) all.delete(key);
    }
  }

  /** Forgets every series, before a collector fills it again: what is gone must not linger. */
  clear(name: MetricName): void {
    this.#seriesOf(name).clear();
    // A single value is told from the start.
    const { kind, labels }: MetricDefinition = metricDefinitions[name];
    if (labels.length === 0 && kind !== 'histogram') this.#at(name, []);
  }

  render(): string {
    for (const collect of this.#collectors) collect();
    const lines: string[] = [];
    for (const [metric, all] of this.#metrics) {
      const { name, help, kind, labels }: MetricDefinition = metricDefinitions[metric];
      if (lines.length > 0) lines.push('');
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`);
      for (const [key, series] of all) {
        series.write(lines, name, labels.length === 0 ? '' : labelText(labels, key.split(labelSeparator)));
      }
    }
    lines.push('');
    return lines.join('\n');
  }

  #seriesOf(name: MetricName): Map<string, Series> {
    const all = this.#metrics.get(name);
    assert(all, 'every metric is defined');
    return all;
  }

  #at(name: MetricName, labels: readonly string[]): Series {
    const all = this.#seriesOf(name);
    const key = labels.length === 1 ? (labels[0] ?? '') : labels.join(labelSeparator);
    const found = all.get(key);
    if (found) return found;
    const definition: MetricDefinition = metricDefinitions[name];
    assert(
      labels.length === definition.labels.length,
      `${definition.name} takes the labels ${definition.labels.join(', ')}`,
    );
    const series = definition.kind === 'histogram' ? new HistogramSeries(definition.buckets ?? []) : new ValueSeries();
    all.set(key, series);
    return series;
  }
}
