/** The expected answers of searches by vectors, computed the plain way. */

export type Metric = 'l2_squared' | 'cosine' | 'inner_product';

/** A hit of one search, best first in a list of them. */
export interface RankedHit {
  key: string;
  score: number;
}

export interface Fusion {
  strategy: 'rrf' | 'rsf';
  weights: Readonly<Record<string, number>>;
  rankConstant: number;
}

/** Raw distance of two dense vectors; smaller is nearer. */
export function distanceOf(metric: Metric, a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, at) => sum + value * (y[at] ?? 0), 0);
  if (metric === 'inner_product') return -dot(a, b);
  if (metric === 'cosine') return 1 - dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
  return a.reduce((sum, value, at) => sum + (value - (b[at] ?? 0)) ** 2, 0);
}

/** The score of a distance; higher is better. */
export function scoreOf(metric: Metric, distance: number): number {
  if (metric === 'inner_product') return -distance;
  return metric === 'cosine' ? 1 - distance : 1 / (1 + distance);
}

/** Product of two sparse vectors: token -> weight. */
export function sparseProduct(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): number {
  return Object.entries(a).reduce((sum, [token, weight]) => sum + weight * (b[token] ?? 0), 0);
}

/** Best score first, ties by key. */
export function ranked(hits: RankedHit[]): RankedHit[] {
  return hits.toSorted((a, b) => b.score - a.score || (a.key < b.key ? -1 : 1));
}

/** The lists of several searches, by their names, as one. */
export function fused(lists: Readonly<Record<string, RankedHit[]>>, fusion: Fusion): RankedHit[] {
  const sums = new Map<string, number>();
  for (const [name, list] of Object.entries(lists)) {
    const weight = fusion.weights[name] ?? 1;
    const scores = list.map(({ score }) => score);
    const [least, most] = [Math.min(...scores), Math.max(...scores)];
    for (const [at, { key, score }] of list.entries()) {
      const relative = most > least ? (score - least) / (most - least) : 1;
      const share = fusion.strategy === 'rsf' ? relative : 1 / (fusion.rankConstant + at + 1);
      sums.set(key, (sums.get(key) ?? 0) + weight * share);
    }
  }
  return ranked([...sums].map(([key, score]) => ({ key, score: Math.fround(score) })));
}
