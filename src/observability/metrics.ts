import { assert } from '../lib/assert.ts';
import { type MetricDefinition, type MetricName, metricDefinitions } from './metric-definitions.ts';

/** Label combinations of one metric; more are dropped and counted, so that no label can fill the memory. */
const seriesPerMetricMax = 2_000;

interface Series {
  readonly labels: string;
  value: number;
  /** Of a histogram: observations per bucket, not yet cumulative; the last is everything above. */
  readonly buckets: number[];
  sum: number;
}

class Family {
  readonly definition: MetricDefinition;
  readonly series = new Map<string, Series>();

  constructor(definition: MetricDefinition) {
    this.definition = definition;
  }

  at(values: readonly string[]): Series | undefined {
    const key = values.length === 1 ? (values[0] ?? '') : values.join('\u0000');
    const found = this.series.get(key);
    if (found !== undefined) return found;
    const { labels, buckets, name } = this.definition;
    assert(values.length === labels.length, `${name} takes the labels ${labels.join(', ')}`);
    if (this.series.size >= seriesPerMetricMax) return undefined;
    const text = labels.map((label, index) => `${label}="${escaped(values[index] ?? '')}"`).join(',');
    const fresh: Series = { labels: text, value: 0, buckets: new Array((buckets?.length ?? -1) + 1).fill(0), sum: 0 };
    this.series.set(key, fresh);
    return fresh;
  }
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

/** The registry of all metrics, and their text form (Prometheus exposition format 0.0.4). */
export class Metrics {
  readonly #families = new Map<MetricName, Family>();
  readonly #collectors: (() => void)[] = [];

  constructor() {
    for (const name of Object.keys(metricDefinitions) as MetricName[]) {
      const family = new Family(metricDefinitions[name]);
      this.#families.set(name, family);
      if (family.definition.labels.length === 0) family.at([]);
    }
  }

  /** Called before every scrape, to refresh gauges. */
  onCollect(collect: () => void): void {
    this.#collectors.push(collect);
  }

  increment(name: MetricName, labels: readonly string[] = [], by = 1): void {
    const series = this.#at(name, labels);
    if (series !== undefined) series.value += by;
  }

  set(name: MetricName, labels: readonly string[], value: number): void {
    const series = this.#at(name, labels);
    if (series !== undefined) series.value = value;
  }

  /** Adds one observation to a histogram, in the unit of its name. */
  observe(name: MetricName, labels: readonly string[], value: number): void {
    const series = this.#at(name, labels);
    if (series === undefined) return;
    const bounds = metricDefinitions[name] as MetricDefinition;
    let index = 0;
    while (index < (bounds.buckets?.length ?? 0) && value > (bounds.buckets?.[index] ?? 0)) index += 1;
    series.buckets[index] = (series.buckets[index] ?? 0) + 1;
    series.value += 1;
    series.sum += value;
  }

  /** Removes every series of a gauge, before a collector fills it again: what is gone must not linger. */
  clear(name: MetricName): void {
    this.#families.get(name)?.series.clear();
  }

  render(): string {
    for (const collect of this.#collectors) collect();
    let text = '';
    for (const { definition, series } of this.#families.values()) {
      if (series.size === 0) continue;
      text += `# HELP ${definition.name} ${definition.help}\n# TYPE ${definition.name} ${definition.kind}\n`;
      for (const one of series.values())
        text +=
          definition.kind === 'histogram'
            ? histogramLines(definition, one)
            : line(definition.name, one.labels, one.value);
    }
    return text;
  }

  #at(name: MetricName, labels: readonly string[]): Series | undefined {
    const series = this.#families.get(name)?.at(labels);
    if (series === undefined) this.increment('seriesDropped');
    return series;
  }
}

function line(name: string, labels: string, value: number): string {
  return labels === '' ? `${name} ${value}\n` : `${name}{${labels}} ${value}\n`;
}

function histogramLines({ name, buckets = [] }: MetricDefinition, series: Series): string {
  const prefix = series.labels === '' ? '' : `${series.labels},`;
  let text = '';
  let below = 0;
  for (const [index, bound] of buckets.entries()) {
    below += series.buckets[index] ?? 0;
    text += line(`${name}_bucket`, `${prefix}le="${bound}"`, below);
  }
  text += line(`${name}_bucket`, `${prefix}le="+Inf"`, series.value);
  return text + line(`${name}_sum`, series.labels, series.sum) + line(`${name}_count`, series.labels, series.value);
}
