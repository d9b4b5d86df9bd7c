import { limits } from '../../config/limits.ts';
import { highlightDocuments, matchDocuments, orderPage } from '../../engine/native-query.ts';
import { mappedSchemaOf } from '../../index-kinds/all-kinds.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { StoredDocument } from '../../storage/reader/document-store.ts';
import { type FramedDocument, frameOf, framesOf } from '../document-frames.ts';
import { IndexedBodies, indexedTextsOf } from '../indexed-bodies.ts';
import { type NativePlan, textPlan } from '../plan/native-plan.ts';
import type { PlannedQuery } from '../plan/query-plan.ts';
import type { QueryDeadline } from '../query-deadline.ts';
import type { HighlightPlan } from '../request/highlight-request.ts';
import type { SearchableTable, ServingIndex } from '../searchable-table.ts';
import {
  committedHeads,
  freshnessOf,
  hasReplayed,
  type SearchedIndexes,
  waitUntilReplayed,
  waitUntilShown,
} from './index-freshness.ts';
import type { HydratedDocument, QueryTarget } from './query-target.ts';

const encoder = new TextEncoder();
/** Stands for the index of a leg that searches none. */
const listedHandle = 0;

export interface OpenTarget extends QueryTarget {
  /** The indexes that were taken are still those that serve. */
  isOpen(): boolean;
  /**
   * The engine has failed at a search: indexes whose files are damaged, or over which it fails again, are closed, and built from
   * the documents. True when another attempt may work.
   */
  searchFailed(): Promise<boolean>;
}

/** A table whose ranges are held open. */
interface LeasedTable {
  table: SearchableTable;
  ranges: readonly IndexedRange[];
  clock: Clock;
  caller: SearchedIndexes['caller'];
  deadline: QueryDeadline;
}

/** The indexes that a planned query runs on, once they have replayed or the wait for that is over. */
export async function openTarget(
  { table, ranges, clock, caller, deadline }: LeasedTable,
  planned: Pick<PlannedQuery, 'plan' | 'textIndex' | 'waitForIndexMs'>,
  nowMs: number,
): Promise<OpenTarget> {
  const { legs = [] } = planned.plan;
  // A graph leg has its documents with it, and its search has waited for its index.
  const legNames = legs.flatMap(({ kind, name }) => (kind === 'graph' ? [] : [name]));
  const searchedBy = (index: ServingIndex): SearchedIndexes => {
    return { ranges, names: [index.name, ...legNames], clock, caller };
  };
  let index = textIndexOf(table, planned.textIndex);
  for (;;) {
    await waitForIndexes(searchedBy(index), planned.waitForIndexMs, deadline);
    const now = textIndexOf(table, planned.textIndex);
    if (index.name === now.name) break;
    // Another index has taken over meanwhile.
    index = now;
  }
  const searched = searchedBy(index);
  const { names } = searched;
  const hides = planned.plan.row_filter !== undefined;
  const bodies = new IndexedBodies(indexedTextsOf(table, index), { hides });
  const indexed = (documents: readonly HydratedDocument[]) => bodies.of(documents, inBytes);
  const handles = () => names.flatMap((name) => ranges.map((range) => range.applier(name)?.index?.handle));
  const taken = handles();
  return {
    isOpen: () => handles().every((handle, at) => handle === taken[at]),
    searchFailed: async () => {
      const looks = ranges.map((range) => range.searchFailed(caller.signal, names));
      return (await Promise.all(looks)).includes(true);
    },
    tableName: table.name,
    freshness: freshnessOf(searched, deadline),
    heldBytes: 0,
    expiredAtOrBeforeMs: table.expiredAtOrBeforeMs(nowMs),
    ranges: ranges.map((range) => {
      const { rangeId, stored } = range;
      // Of before the search: what it finds was indexed by then, or is matched again.
      const shown = range.applier(index.name)?.progress.published ?? 0;
      return {
        rangeId,
        handle: handleOf(range, index.name, table),
        documents: (ordinals) =>
          bodies.read(
            range,
            () => stored.documents.byOrdinals(ordinals),
            ({ documents }) => documents,
          ),
        bodyBytes: (ordinals) => stored.documents.bodyBytes(ordinals),
        hasNewTexts: (document) => bodies.sequenceOf(document) > Math.max(document.sequence, shown),
      };
    }),
    bodies,
    vectorHandles: legs.flatMap(({ kind, name }) =>
      ranges.map((range) => (kind === 'graph' ? listedHandle : handleOf(range, name, table))),
    ),
    highlight: (plan, wanted, documents) => highlightStored(index, plan, wanted, indexed(documents)),
    recheck: (plan, documents) => matchIndexed(index, plan, indexed(documents)),
    orderPage: (plan, hits, changed) => {
      const planJson = JSON.stringify({ filter: [], exclusion: [], limit: 0, offset: 0, sort: plan.sort });
      return orderPage(mappedSchemaOf(index.definition), planJson, hits, frameOf(indexed(changed)));
    },
  };
}

/** The full-text index that is asked for, or the one that answers otherwise. */
function textIndexOf(table: SearchableTable, name: string | undefined): ServingIndex {
  if (name === undefined) return table.servingIndex;
  const index = table.listedIndexes.find((each) => each.name === name);
  if (index) return index;
  throw new ServiceError('index_not_found', `the index "${name}" was dropped while it was asked for`);
}

/** Waits as the request says; an index that was just opened is otherwise waited for until it has replayed its tail. */
async function waitForIndexes(
  searched: SearchedIndexes,
  waitMs: number | undefined,
  deadline: QueryDeadline,
): Promise<void> {
  if (waitMs === undefined) {
    const replayMs = Math.min(limits.indexReplayWaitMs, deadline.leftMs);
    if (!hasReplayed(searched)) await waitUntilReplayed(searched, replayMs);
    return;
  }
  const heads = committedHeads(searched.ranges);
  await deadline.waiting((msMax) => waitUntilShown(searched, heads, Math.min(waitMs, msMax)));
}

/** Which of the stored documents, that `bodies` has read, match the plan by the table's own mapping and analyzers. */
export function matchStored(
  table: SearchableTable,
  plan: NativePlan,
  documents: Iterable<StoredDocument>,
  bodies: IndexedBodies,
): Promise<boolean[]> {
  return matchIndexed(
    table.servingIndex,
    plan,
    bodies.of(documents, (document) => document),
  );
}

/** Which of these bodies match the plan by the mapping and analyzers of a full-text index. */
export async function matchIndexed(
  { definition }: ServingIndex,
  plan: NativePlan,
  documents: Iterable<FramedDocument>,
): Promise<boolean[]> {
  const matches: boolean[] = [];
  const planJson = JSON.stringify({ ...plan, offset: 0, limit: 0, sort: [] });
  for (const frame of framesOf(documents)) {
    for (const matched of await matchDocuments(mappedSchemaOf(definition), planJson, frame))
      matches.push(matched === 1);
  }
  return matches;
}

/** The fragments of each document that the plan asks for, by the mapping and analyzers of a full-text index. */
async function highlightStored(
  { definition }: ServingIndex,
  plan: NativePlan,
  wanted: HighlightPlan,
  documents: Iterable<FramedDocument>,
): Promise<string[]> {
  const highlights: string[] = [];
  const { aggregations: _, cursor: _cursor, ...asked } = textPlan(plan);
  const planJson = JSON.stringify({ ...asked, offset: 0, limit: 0, sort: [] });
  for (const frame of framesOf(documents)) {
    const rows = await highlightDocuments(mappedSchemaOf(definition), planJson, JSON.stringify(wanted), frame);
    for (const row of rows) highlights.push(JSON.stringify(row));
  }
  return highlights;
}

function inBytes({ key, ttlBaseMs, writtenMs, text }: HydratedDocument): FramedDocument {
  return { key, ttlBaseMs, writtenMs, body: encoder.encode(text) };
}

/** Handle of an index in the native engine. */
function handleOf(range: IndexedRange, indexName: string, table: SearchableTable): number {
  const native = range.applier(indexName)?.index;
  if (native) return native.handle;
  const message = `the index "${indexName}" of table ${JSON.stringify(table.name)} is not open yet; try again shortly`;
  throw new ServiceError('unavailable', message, { retryAfterMs: 500 });
}
