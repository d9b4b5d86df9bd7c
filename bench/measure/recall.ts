/** The share of the true neighbours that were found. A query that has none counts as answered. */
export function recallOf(found: readonly number[][], truth: readonly number[][]): number {
  if (found.length !== truth.length) throw new RangeError('answers and truth differ in length');
  let wanted = 0;
  let hits = 0;
  for (const [query, rows] of truth.entries()) {
    const answer = new Set(found[query]);
    wanted += rows.length;
    hits += rows.filter((row) => answer.has(row)).length;
  }
  return wanted === 0 ? 1 : hits / wanted;
}

/** A place on the curve of an index: how fast it is at which recall. */
export interface CurvePoint {
  recall: number;
  perSecond: number;
}

/**
 * Queries a second at exactly this recall: between the two measured points around it the logarithm of the rate is taken to be
 * linear. When even the fastest point has more recall its rate counts, a lower bound. Throws when no point reaches the recall.
 */
export function rateAtRecall(points: readonly CurvePoint[], recall: number): number {
  const above = points.filter((point) => point.recall >= recall).sort((left, right) => left.recall - right.recall);
  const [upper] = above;
  if (!upper) {
    const best = Math.max(...points.map((point) => point.recall));
    throw new Error(`recall ${recall} was not reached: the most thorough search has ${best.toFixed(3)}`);
  }
  const below = points.filter((point) => point.recall < recall).sort((left, right) => right.recall - left.recall);
  const [lower] = below;
  if (!lower || lower.perSecond <= upper.perSecond) return upper.perSecond;
  const share = (recall - lower.recall) / (upper.recall - lower.recall);
  return Math.exp(Math.log(lower.perSecond) * (1 - share) + Math.log(upper.perSecond) * share);
}
