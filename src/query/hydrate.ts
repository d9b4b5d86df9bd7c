import type { NativePlan } from './native-plan.ts';
import type { HydratedDocument, NativeHits, QueryTarget } from './query-target.ts';

export interface Hit {
  document: HydratedDocument;
  score: number;
  /** Typed sort values, one for each `order_by`; undefined without a sort. */
  sort: unknown[] | undefined;
}

/**
 * Loads the rows of the hits, in their order. A row that has changed since it was indexed is matched again on the
 * stored body, so that no answer shows a body that does not match; what no longer matches, exists or lives is left
 * out.
 */
export async function hydrate(hits: NativeHits, plan: NativePlan, target: QueryTarget): Promise<Hit[]> {
  const rows = loadRows(hits, target);
  const sorts = hits.sort === '' ? undefined : (JSON.parse(hits.sort) as unknown[][]);
  const found: Hit[] = [];
  const changed: number[] = [];
  for (let index = 0; index < hits.ordinals.length; index += 1) {
    const document = rows[hits.ranges[index] ?? 0]?.get(hits.ordinals[index] ?? 0);
    if (!document || hasExpired(document, target)) continue;
    if (document.sequence !== hits.sequences[index]) changed.push(found.length);
    found.push({ document, score: hits.scores[index] ?? 0, sort: sorts?.[index] });
  }
  if (changed.length === 0) return found;
  const matches = await target.recheck(
    plan,
    changed.flatMap((index) => found[index]?.document ?? []),
  );
  const dropped = new Set(changed.filter((_, position) => !matches[position]));
  return found.filter((_, index) => !dropped.has(index));
}

function loadRows(hits: NativeHits, target: QueryTarget): Map<number, HydratedDocument>[] {
  const wanted: number[][] = target.ranges.map(() => []);
  for (let index = 0; index < hits.ordinals.length; index += 1) {
    wanted[hits.ranges[index] ?? 0]?.push(hits.ordinals[index] ?? 0);
  }
  return target.ranges.map((range, index) => {
    const ordinals = wanted[index] ?? [];
    const documents = ordinals.length === 0 ? [] : range.documents(ordinals);
    return new Map(documents.map((document) => [document.ordinal, document]));
  });
}

function hasExpired(document: HydratedDocument, target: QueryTarget): boolean {
  const bound = target.expiredAtOrBeforeMs;
  return bound !== undefined && document.ttlBaseMs !== undefined && document.ttlBaseMs <= bound;
}
