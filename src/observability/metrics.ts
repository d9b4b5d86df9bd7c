import Counter from 'prom-client/lib/counter.js';
import Gauge from 'prom-client/lib/gauge.js';
import Registry from 'prom-client/lib/registry.js';
import { assert } from '../lib/assert.ts';
import { Histogram, type HistogramSeries } from './histogram.ts';
import { type MetricDefinition, type MetricName, metricDefinitions } from './metric-definitions.ts';

type Instrument = Counter | Gauge | Histogram;
/** One series of an instrument, kept so that a hot path does not build label sets again and again. */
type Series = Counter.Internal | Gauge.Internal<string> | HistogramSeries;

/** Takes observations in the unit of the histogram's name. */
export interface Observer {
  observe(value: number): void;
}

/** The registry of all metrics, and their text form (Prometheus exposition format 0.0.4). */
export class Metrics {
  readonly #registry = new Registry();
  readonly #instruments = new Map<MetricName, Instrument>();
  readonly #series = new Map<MetricName, Map<string, Series>>();
  readonly #collectors: (() => void)[] = [];

  constructor() {
    for (const name of Object.keys(metricDefinitions) as MetricName[]) {
      this.#instruments.set(name, this.#instrument(metricDefinitions[name]));
      this.#series.set(name, new Map());
    }
  }

  /** Called before every scrape, to refresh gauges. */
  onCollect(collect: () => void): void {
    this.#collectors.push(collect);
  }

  increment(name: MetricName, labels: readonly string[] = [], by = 1): void {
    (this.#at(name, labels) as Counter.Internal).inc(by);
  }

  set(name: MetricName, labels: readonly string[], value: number): void {
    (this.#at(name, labels) as Gauge.Internal<string>).set(value);
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
    const series = this.#series.get(name);
    for (const key of [...(series?.keys() ?? [])]) {
      const labels = key.split('\u0000');
      if (!isGone(labels[0] ?? '')) continue;
      this.#instruments.get(name)?.remove(...labels);
      series?.delete(key);
    }
  }

  /** Forgets every series, before a collector fills it again: what is gone must not linger. */
  clear(name: MetricName): void {
    this.#instruments.get(name)?.reset();
    this.#series.get(name)?.clear();
  }

  render(): Promise<string> {
    for (const collect of this.#collectors) collect();
    return this.#registry.metrics();
  }

  #instrument({ kind, name, help, labels, buckets }: MetricDefinition): Instrument {
    const common = { name, help, labelNames: [...labels], registers: [this.#registry] };
    if (kind === 'counter') return new Counter(common);
    if (kind === 'gauge') return new Gauge(common);
    const histogram = new Histogram({ name, help, labelNames: labels, buckets: buckets ?? [] });
    // The registry asks a metric for no more than its name and its values.
    this.#registry.registerMetric(histogram as unknown as Counter);
    return histogram;
  }

  #at(name: MetricName, labels: readonly string[]): Series {
    const known = this.#series.get(name);
    const instrument = this.#instruments.get(name);
    assert(known && instrument, 'every metric is defined');
    const key = labels.length === 1 ? (labels[0] ?? '') : labels.join('\u0000');
    const found = known.get(key);
    if (found) return found;
    const definition: MetricDefinition = metricDefinitions[name];
    assert(
      labels.length === definition.labels.length,
      `${definition.name} takes the labels ${definition.labels.join(', ')}`,
    );
    const series = instrument.labels(...labels);
    known.set(key, series);
    return series;
  }
}
