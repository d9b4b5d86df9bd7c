import type { HighlightPlan } from './highlight-request.ts';
import type { NativePlan } from './native-plan.ts';

/** A stored document, as the page needs it. */
export interface HydratedDocument {
  ordinal: number;
  key: string;
  /** The row's sequence: the document's version. */
  sequence: number;
  /** Base of its lifetime in milliseconds; undefined when it has none. */
  ttlBaseMs: number | undefined;
  /** JSON object, as stored. */
  text: string;
}

/** One range of a table, open for queries. */
export interface QueryRange {
  rangeId: number;
  /** Handle of the serving full-text index in the native engine. */
  handle: number;
  /** Rows that still exist, in no promised order. */
  documents(ordinals: number[]): HydratedDocument[];
}

/** What one query runs on. */
export interface QueryTarget {
  tableName: string;
  ranges: QueryRange[];
  /** Handles of the vector indexes of the plan's legs: those of the first leg for each range, then of the next. */
  vectorHandles: number[];
  /** Documents whose base time is at or before this have expired; undefined when the table has no lifetime. */
  expiredAtOrBeforeMs: number | undefined;
  /** For each document a JSON object of path -> marked fragments. */
  highlight(plan: NativePlan, wanted: HighlightPlan, documents: HydratedDocument[]): Promise<string[]>;
  /** Which of these stored documents match the plan; `match_documents` of the engine with the table's mapping. */
  recheck(plan: NativePlan, documents: HydratedDocument[]): Promise<boolean[]>;
}

/** Hits of one native call, in result order; arrays run in parallel. */
export interface NativeHits {
  /** Index into the handles that were given. */
  ranges: Uint32Array;
  ordinals: Uint32Array;
  sequences: Float64Array;
  scores: Float32Array;
  /** JSON array with one array a hit: its sort values, and its position for a cursor; empty without a sort. */
  sort: string;
  total: number;
  totalIsExact: boolean;
  /** The time was over before all documents were looked at. */
  isPartial: boolean;
  maxScore: number;
  /** JSON array of the trees of the hits' scores; empty when the plan does not ask for it. */
  explanations: string;
  /** JSON object; empty when the plan has no aggregations. */
  aggregations: string;
  /** Distance by the first dense leg that found the hit, NaN without one; empty for a plan without legs. */
  distances: Float32Array;
  /** JSON array with an object a hit: leg -> its own score, text as `full_text`; empty for a plan without legs. */
  legScores: string;
  /** JSON object; empty when the plan does not ask for it. */
  profile: string;
}

/** What a plan runs over. */
export interface QueriedIndexes {
  /** The full-text index of each range. */
  handles: number[];
  vectorHandles: number[];
  /** Query vectors of the plan's legs, one after another. */
  vectors: Uint8Array;
}

/** Who waits for an answer. */
export interface QueryCaller {
  /** Aborted when nobody waits any more. */
  readonly signal: AbortSignal;
}

export type RunNativeQuery = (indexes: QueriedIndexes, plan: NativePlan, caller: QueryCaller) => Promise<NativeHits>;
