/** The value below which `share` (0 to 1) of the values lie, by the nearest-rank rule. `values` need not be sorted. */
export function percentile(values: ArrayLike<number>, share: number): number {
  if (values.length === 0) throw new RangeError('a percentile of no values');
  const sorted = Float64Array.from(values).sort();
  const rank = Math.max(1, Math.ceil(share * sorted.length));
  return sorted[rank - 1] ?? Number.NaN;
}

/** The middle value; the mean of the two middle ones when their number is even. */
export function median(values: ArrayLike<number>): number {
  if (values.length === 0) throw new RangeError('a median of no values');
  const sorted = Float64Array.from(values).sort();
  const upper = sorted[sorted.length >> 1] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[(sorted.length >> 1) - 1] ?? Number.NaN)) / 2;
}

export interface Spread {
  median: number;
  min: number;
  max: number;
  values: number[];
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values), values: [...values] };
}
