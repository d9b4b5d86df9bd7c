import type { IndexedBodies } from '../indexed-bodies.ts';
import type { NativePlan } from '../plan/native-plan.ts';
import type { HighlightPlan } from '../request/highlight-request.ts';
import type { IndexFreshness } from './index-freshness.ts';

/** A stored document, as the page needs it. */
export interface HydratedDocument {
  ordinal: number;
  key: string;
  /** The row's sequence, by which an index knows what it has seen of it. */
  sequence: number;
  /** Its TTL base in milliseconds; undefined when it has none. */
  ttlBaseMs: number | undefined;
  /** When it was written, in milliseconds; undefined where the body says so itself. */
  writtenMs: number | undefined;
  /** JSON object, as it was written. */
  text: string;
}

/** One range of a table, open for queries. */
interface QueryRange {
  rangeId: number;
  /** Handle of the serving full-text index in the native engine. */
  handle: number;
  /** Rows that still exist, in no promised order, and the ordinals of those that are damaged. */
  documents(ordinals: number[]): { documents: HydratedDocument[]; damaged: ReadonlySet<number> };
  /** Bytes of the bodies of these rows, which are not copied for it. */
  bodyBytes(ordinals: number[]): number;
  /** Whether texts that were made of one of these documents may be newer than what the index had when it was searched. */
  hasNewTexts(document: HydratedDocument): boolean;
}

/** The table and ranges of one query. */
export interface QueryTarget {
  tableName: string;
  ranges: QueryRange[];
  /** Handles of the vector indexes of the plan's legs: those of the first leg for each range, then of the next. */
  vectorHandles: number[];
  freshness: IndexFreshness;
  /** Of the documents of its largest page, as its caller has counted them. */
  heldBytes: number;
  /** The readers of the documents of the ranges. */
  bodies: IndexedBodies;
  /** Documents whose base time is at or before this have expired; undefined when the table has no TTL. */
  expiredAtOrBeforeMs: number | undefined;
  /** For each document a JSON object of path -> marked fragments. */
  highlight(plan: NativePlan, wanted: HighlightPlan, documents: HydratedDocument[]): Promise<string[]>;
  /** Which of these stored documents match the plan; `match_documents` of the engine with the table's mapping. */
  recheck(plan: NativePlan, documents: HydratedDocument[]): Promise<boolean[]>;
  /** The hits of a sorted page in the order of what is stored; `order_page` of the engine with the table's mapping. */
  orderPage(plan: NativePlan, hits: PageHit[], changed: HydratedDocument[]): Promise<OrderedHit[]>;
}

/** A hit of a sorted page, as the index has it. */
export interface PageHit {
  key: string;
  position: string;
  /** Its place among the documents that have changed since they were indexed; null when it has not. */
  row: number | null;
}

interface OrderedHit {
  /** Its place among the hits that were given. */
  hit: number;
  /** Typed sort values of the stored document. */
  sort: unknown[];
}

/** Hits of one native call. Members of text are there when the plan asks for them. */
export interface NativeHits {
  /**
   * For each hit, in result order: its own numbers, then its score by each of `legs`, NaN where that did not find it, then
   * which of its vectors each of `legs` found, NaN also for text.
   */
  numbers: Float64Array;
  total: number;
  totalIsExact: boolean;
  /** The time was over before all documents were looked at. */
  isPartial: boolean;
  maxScore: number;
  /** JSON array with one array a hit: its sort values, and its position for a cursor. */
  sort?: string;
  /** JSON array of the trees of the hits' scores. */
  explanations?: string;
  /** JSON object. */
  aggregations?: string;
  /** The searches that made the answer, text as `full_text`; of plans with legs. */
  legs?: string[];
  /** JSON object. */
  profile?: string;
}

/** Where the numbers of a hit are. */
const hitNumber = {
  /** Index into the handles that were given. */
  range: 0,
  ordinal: 1,
  /** The version of the document that matched. */
  sequence: 2,
  score: 3,
  /** Distance by the first dense leg that found the hit, NaN without one. */
  distance: 4,
} as const;

const ownNumbers = Object.keys(hitNumber).length;

function numbersPerHit({ legs }: NativeHits): number {
  return ownNumbers + 2 * (legs?.length ?? 0);
}

export function hitCount(hits: NativeHits): number {
  return hits.numbers.length / numbersPerHit(hits);
}

/** One of the numbers of the hit at `index`. */
export function numberOf(hits: NativeHits, index: number, which: keyof typeof hitNumber): number {
  return hits.numbers[index * numbersPerHit(hits) + hitNumber[which]] ?? Number.NaN;
}

/** The score of the hit in each search that found it, by leg; undefined for a plan without legs. */
export function legScoresOf(hits: NativeHits, index: number): ReadonlyMap<string, number> | undefined {
  return hits.legs && numbersByLeg(hits, hits.legs, index * numbersPerHit(hits) + ownNumbers);
}

/** Which of its vectors each search by vectors found the hit by, by leg; undefined for a plan without legs. */
export function legVectorsOf(hits: NativeHits, index: number): ReadonlyMap<string, number> | undefined {
  return hits.legs && numbersByLeg(hits, hits.legs, index * numbersPerHit(hits) + ownNumbers + hits.legs.length);
}

function numbersByLeg({ numbers }: NativeHits, legs: readonly string[], first: number): Map<string, number> {
  const byLeg = new Map<string, number>();
  for (let at = 0; at < legs.length; at += 1) {
    const number = numbers[first + at] ?? Number.NaN;
    if (!Number.isNaN(number)) byLeg.set(legs[at] ?? '', number);
  }
  return byLeg;
}

/** The indexes that a plan runs over. */
interface QueriedIndexes {
  /** The full-text index of each range. */
  handles: number[];
  vectorHandles: number[];
  /** Query vectors of the plan's legs, one after another. */
  vectors: Uint8Array;
}

/** The caller that waits for an answer. */
export interface QueryCaller {
  /** Aborted when nobody waits any more. */
  readonly signal: AbortSignal;
  /** For the log. */
  readonly requestId?: string;
  /** Whether nobody else waits for anything; false when it is not known. */
  isAlone?(): boolean;
  /**
   * Counts bytes of the answer that are about to be held whole, together with those of all requests: at once, or when there is
   * room. Throws or rejects with `unavailable` where they do not fit in time.
   */
  holdAnswer?(bytes: number): Promise<void> | undefined;
}

export type RunNativeQuery = (indexes: QueriedIndexes, plan: NativePlan, caller: QueryCaller) => Promise<NativeHits>;
