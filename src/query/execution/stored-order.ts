import type { NativePlan } from '../plan/native-plan.ts';
import type { Hit } from './hydrate.ts';
import type { HydratedDocument, PageHit, QueryTarget } from './query-target.ts';

/**
 * A sorted page by what its documents hold now. Hits whose row has changed since it was indexed take their sort values
 * from the stored body, so that `_sort` says what `_source` shows and the page is in that order. Cursors stay places of
 * the index, in its order: the page after the last hit begins where it would have begun.
 */
export async function orderByStored(hits: Hit[], plan: NativePlan, target: QueryTarget): Promise<Hit[]> {
  if (plan.sort.length === 0 || !hits.some((hit) => hit.hasChanged)) return hits;
  const changed: HydratedDocument[] = [];
  const given: PageHit[] = [];
  for (const { document, place, hasChanged } of hits) {
    if (place === undefined) return hits;
    given.push({ key: document.key, position: place.position, row: hasChanged ? changed.length : null });
    if (hasChanged) changed.push(document);
  }
  const ordered = await target.orderPage(plan, given, changed);
  return ordered.flatMap(({ hit, sort }, at) => {
    const found = hits[hit];
    return found ? [{ ...found, sort, place: hits[at]?.place }] : [];
  });
}
