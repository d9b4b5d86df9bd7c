/** One series of a counter or a gauge. */
export class ValueSeries {
  value = 0;

  add(by: number): void {
    this.value += by;
  }

  set(value: number): void {
    this.value = value;
  }

  /** Appends its line in the text form. */
  write(lines: string[], name: string, labels: string): void {
    lines.push(sampleLine(name, labels, this.value));
  }
}

/** One series of a histogram. */
export class HistogramSeries {
  /** Observations by bucket, the last one without an upper bound. */
  readonly #counts: Float64Array;
  readonly #bounds: readonly number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sum += value;
  }

  /** Appends its buckets, each with what the lower ones hold, its sum and its count. */
  write(lines: string[], name: string, labels: string): void {
    const others = labels === '' ? '' : `,${labels}`;
    let count = 0;
    for (const [bucket, bound] of [...this.#bounds, '+Inf'].entries()) {
      count += this.#counts[bucket] ?? 0;
      lines.push(sampleLine(`${name}_bucket`, `le="${bound}"${others}`, count));
    }
    lines.push(sampleLine(`${name}_sum`, labels, this.#sum), sampleLine(`${name}_count`, labels, count));
  }
}

/** `labels`: their names and values as `labelText` gives them. */
function sampleLine(name: string, labels: string, value: number): string {
  return labels === '' ? `${name} ${valueText(value)}` : `${name}{${labels}} ${valueText(value)}`;
}

/** Values are in the order of the names. */
export function labelText(names: readonly string[], values: readonly string[]): string {
  return names.map((name, at) => `${name}="${escaped(values[at] ?? '')}"`).join(',');
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

function valueText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
