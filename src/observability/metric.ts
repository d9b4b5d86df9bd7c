import { assert } from '../lib/assert.ts';
import type { MetricDefinition } from './metric-definitions.ts';

/** One set of label values and what was counted under it. */
interface Series {
  /** `name="value"` pairs with commas between them; empty without labels. */
  readonly labels: string;
  /** Of a histogram: the sum of what was observed. */
  value: number;
  /** Observations of a histogram by bucket, the last one above all bounds; empty otherwise. */
  readonly counts: number[];
}

/**
 * One metric and its series: plain numbers, because a request moves half a dozen of them. They become text
 * (Prometheus exposition format 0.0.4) when they are read.
 */
export class Metric {
  readonly #definition: MetricDefinition;
  readonly #bounds: readonly number[];
  /** By the values of their labels. */
  readonly #series = new Map<string, Series>();

  constructor(definition: MetricDefinition) {
    this.#definition = definition;
    this.#bounds = definition.buckets ?? [];
    this.clear();
  }

  add(labels: readonly string[], by: number): void {
    this.#at(labels).value += by;
  }

  set(labels: readonly string[], value: number): void {
    this.#at(labels).value = value;
  }

  observe(labels: readonly string[], value: number): void {
    const series = this.#at(labels);
    let bucket = 0;
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] ?? 0)) bucket += 1;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.value += value;
  }

  /** Forgets every series; the one of a metric without labels is there from the start, at zero. */
  clear(): void {
    this.#series.clear();
    if (this.#definition.labels.length === 0) this.#at([]);
  }

  render(): string {
    const { kind, name, help } = this.#definition;
    const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`];
    for (const series of this.#series.values()) {
      if (kind === 'histogram') lines.push(...this.#histogramLines(series));
      else lines.push(`${name}${braced(series.labels)} ${series.value}`);
    }
    return lines.join('\n');
  }

  #histogramLines({ labels, value, counts }: Series): string[] {
    const { name } = this.#definition;
    let below = 0;
    const lines = counts.map((count, bucket) => {
      below += count;
      const bound = `le="${this.#bounds[bucket] ?? '+Inf'}"`;
      return `${name}_bucket${braced(labels === '' ? bound : `${bound},${labels}`)} ${below}`;
    });
    return [...lines, `${name}_sum${braced(labels)} ${value}`, `${name}_count${braced(labels)} ${below}`];
  }

  #at(values: readonly string[]): Series {
    const key = values.length === 1 ? (values[0] ?? '') : values.join('\u0000');
    const found = this.#series.get(key);
    if (found) return found;
    const { kind, name, labels } = this.#definition;
    assert(values.length === labels.length, `${name} takes the labels ${labels.join(', ')}`);
    const pairs = labels.map((label, index) => `${label}="${escaped(values[index] ?? '')}"`);
    const buckets = kind === 'histogram' ? this.#bounds.length + 1 : 0;
    const series = { labels: pairs.join(','), value: 0, counts: new Array<number>(buckets).fill(0) };
    this.#series.set(key, series);
    return series;
  }
}

function braced(labels: string): string {
  return labels === '' ? '' : `{${labels}}`;
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}
