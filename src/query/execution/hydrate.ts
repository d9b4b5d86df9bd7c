import { limits } from '../../config/limits.ts';
import { textLegName } from '../../index-kinds/full-text.ts';
import { must } from '../../lib/assert.ts';
import { forEachYielding, yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { hasExpired } from '../../lib/ttl.ts';
import { MiB } from '../../lib/units.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type NativePlan, textPlan } from '../plan/native-plan.ts';
import type { CursorPosition } from './page-cursor.ts';
import {
  type HydratedDocument,
  hitCount,
  legScoresOf,
  legVectorsOf,
  type NativeHits,
  numberOf,
  type QueryCaller,
  type QueryTarget,
} from './query-target.ts';

export interface Hit {
  /** Position of its range in the query's target. */
  range: number;
  document: HydratedDocument;
  /** The row has changed since the index has seen it. */
  hasChanged: boolean;
  score: number;
  /** Typed sort values, one for each `order_by`; undefined without a sort. */
  sort: unknown[] | undefined;
  /** Where a page by cursor goes on: as the index has the hit; undefined without a sort. */
  place: CursorPosition | undefined;
  /** The tree of its score, when it was asked for. */
  explanation: unknown;
  /** Raw distance by a dense index; NaN without one. */
  distance: number;
  /** Its score in each search that found it, by leg; undefined for a plan without legs. */
  legScores: ReadonlyMap<string, number> | undefined;
  /** Which of its vectors each search by vectors found it by, by leg; undefined for a plan without legs. */
  legVectors: ReadonlyMap<string, number> | undefined;
}

/** A hit that is no document of an index: a row from elsewhere, or what stands for a document where there is none. */
export function hitOfRow({ key, text }: { readonly key: string; readonly text: string }, score: number): Hit {
  return {
    range: -1,
    document: { ordinal: -1, key, sequence: 0, ttlBaseMs: undefined, writtenMs: undefined, text },
    hasChanged: false,
    score,
    sort: undefined,
    place: undefined,
    explanation: undefined,
    distance: Number.NaN,
    legScores: undefined,
    legVectors: undefined,
  };
}

const noSort: [undefined, undefined] = [undefined, undefined];

/** Rows that are read before the loop yields to other requests, and before their length is known. */
const sliceHits = 64;
/** Slices of which the bytes are asked for before the loop yields. */
const sizedSlices = 16;

interface HydratedPage {
  /** In the order of the answer. */
  hits: Hit[];
  /** Hits whose row has changed and still matches. */
  changed: number;
  /** Greatest score of a hit that was left out; undefined when none was. */
  droppedScore: number | undefined;
  /** Hits that were left out because their stored rows are damaged. */
  damaged: number;
}

/**
 * Loads the rows of the hits, in their order. A row that has changed since it was indexed is matched again on the
 * stored body, so that no answer shows a body that does not match; what no longer matches, exists or lives is left
 * out.
 */
export async function hydrate(
  hits: NativeHits,
  plan: NativePlan,
  target: QueryTarget,
  caller: QueryCaller,
): Promise<HydratedPage> {
  const { rows, damaged } = await loadRows(hits, target, caller);
  const sorts = parsed<[values: unknown[], position: string]>(hits.sort);
  const explanations = parsed<unknown>(hits.explanations);
  const found: Hit[] = [];
  const changed: Hit[] = [];
  let droppedScore: number | undefined;
  for (let index = 0; index < hitCount(hits); index += 1) {
    const range = numberOf(hits, index, 'range');
    const document = rows[range]?.get(numberOf(hits, index, 'ordinal'));
    const score = numberOf(hits, index, 'score');
    if (!document || hasExpired(document.ttlBaseMs, target.expiredAtOrBeforeMs)) {
      droppedScore = Math.max(droppedScore ?? score, score);
      continue;
    }
    const [sort, position] = sorts?.[index] ?? noSort;
    const hit: Hit = {
      range,
      document,
      hasChanged:
        document.sequence !== numberOf(hits, index, 'sequence') || target.ranges[range]?.hasNewTexts(document) === true,
      score,
      sort,
      place: position === undefined ? undefined : { position, key: document.key },
      explanation: explanations?.[index],
      distance: numberOf(hits, index, 'distance'),
      legScores: legScoresOf(hits, index),
      legVectors: legVectorsOf(hits, index),
    };
    found.push(hit);
    if (hit.hasChanged) changed.push(hit);
  }
  if (changed.length === 0) return { hits: found, changed: 0, droppedScore, damaged };
  const dropped = await mismatches(changed, plan, target);
  for (const { score } of dropped) droppedScore = Math.max(droppedScore ?? score, score);
  const kept = dropped.size === 0 ? found : found.filter((hit) => !dropped.has(hit));
  return { hits: kept, changed: changed.length - dropped.size, droppedScore, damaged };
}

function parsed<Item>(json: string | undefined): Item[] | undefined {
  return json === undefined ? undefined : (JSON.parse(json) as Item[]);
}

/** Those of the changed hits that no longer match: what a vector has found need only pass the filters. */
async function mismatches(changed: Hit[], plan: NativePlan, target: QueryTarget): Promise<Set<Hit>> {
  const { aggregations, ...demands } = textPlan(plan);
  const { query, ...conditions } = demands;
  // Beside a search by vectors, a filter that asks for nothing lets everything through.
  const filters: NativePlan = plan.legs ? { ...conditions, legs: plan.legs } : conditions;
  const isFiltered = filters.filter.length + filters.exclusion.length > 0 || filters.row_filter !== undefined;
  const byText: Hit[] = [];
  const byVector: Hit[] = [];
  for (const hit of changed) {
    const isByText = [...(hit.legScores?.keys() ?? [])].every((leg) => leg === textLegName);
    if (isByText) byText.push(hit);
    else if (isFiltered) byVector.push(hit);
  }
  const dropped = new Set<Hit>();
  for (const [hits, asked] of [
    [byText, demands],
    [byVector, filters],
  ] as const) {
    if (hits.length === 0) continue;
    const matches = await target.recheck(
      asked,
      hits.map((hit) => hit.document),
    );
    for (const [at, hit] of hits.entries()) if (!matches[at]) dropped.add(hit);
  }
  return dropped;
}

/** Rows of one range that are read at a time. */
interface RowSlice {
  range: number;
  ordinals: number[];
}

/** The rows of the first slices. */
interface LoadedRows {
  /** By range, then ordinal. */
  rows: Map<number, HydratedDocument>[];
  damaged: number;
  chars: number;
  slices: number;
}

async function loadRows(hits: NativeHits, target: QueryTarget, caller: QueryCaller): Promise<LoadedRows> {
  const slices = slicesOf(hits, target);
  const begun = await load(nothingLoaded(target), slices, target, limits.smallAnswerBytesMax);
  if (begun.chars <= limits.smallAnswerBytesMax) return begun;
  // A large page: room for all of it is taken before it is read.
  const bytes = await bodyBytesOf(slices, target);
  if (bytes > limits.queryDocumentBytesMax) throw pageTooLong();
  const wait = bytes > target.heldBytes ? caller.holdAnswer?.(bytes - target.heldBytes) : undefined;
  target.heldBytes = Math.max(target.heldBytes, bytes);
  if (wait === undefined) return load(begun, slices, target);
  begun.rows.length = 0;
  await wait;
  return load(nothingLoaded(target), slices, target);
}

function nothingLoaded({ ranges }: QueryTarget): LoadedRows {
  return { rows: ranges.map(() => new Map()), damaged: 0, chars: 0, slices: 0 };
}

/** Goes on with what was loaded, until that has more characters than this. */
async function load(
  loaded: LoadedRows,
  slices: readonly RowSlice[],
  target: QueryTarget,
  charsMax = Number.POSITIVE_INFINITY,
): Promise<LoadedRows> {
  for (let at = loaded.slices; at < slices.length && loaded.chars <= charsMax; at += 1) {
    if (at > 0) await yieldToEventLoop();
    const { range, ordinals } = must(slices[at], 'a slice at each place');
    const found = target.ranges[range]?.documents(ordinals);
    for (const document of found?.documents ?? []) {
      loaded.rows[range]?.set(document.ordinal, document);
      loaded.chars += document.text.length;
    }
    loaded.damaged += found?.damaged.size ?? 0;
    loaded.slices = at + 1;
  }
  return loaded;
}

async function bodyBytesOf(slices: readonly RowSlice[], { ranges }: QueryTarget): Promise<number> {
  let bytes = 0;
  const add = (at: number) => {
    const { range, ordinals } = must(slices[at], 'a slice at each place');
    bytes += ranges[range]?.bodyBytes(ordinals) ?? 0;
  };
  await forEachYielding(slices.length, add, sizedSlices);
  return bytes;
}

export function pageTooLong(): ServiceError {
  const max = `${limits.queryDocumentBytesMax / MiB} MiB`;
  const message = `the documents of this page have more than ${max} together; ask for fewer at a time by "limit", and go on by a cursor`;
  return new ServiceError('limit_exceeded', message);
}

function slicesOf(hits: NativeHits, { ranges }: QueryTarget): RowSlice[] {
  const wanted: number[][] = ranges.map(() => []);
  for (let index = 0; index < hitCount(hits); index += 1) {
    wanted[numberOf(hits, index, 'range')]?.push(numberOf(hits, index, 'ordinal'));
  }
  const slices: RowSlice[] = [];
  for (const [range, ordinals] of wanted.entries()) {
    for (let start = 0; start < ordinals.length; start += sliceHits)
      slices.push({ range, ordinals: ordinals.slice(start, start + sliceHits) });
  }
  return slices;
}
