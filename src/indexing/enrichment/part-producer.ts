import type { IndexDefinition } from '../../index-kinds/all-kinds.ts';
import type { ArtifactDefinition } from '../../index-kinds/configuration/artifact-config.ts';
import type { RangeReader } from '../../storage/reader/range-reader.ts';

/** How far the parts of an index are made, in one range. */
export interface ProductionReport {
  /** Documents written up to this sequence, since the index exists, have their parts or a recorded failure. */
  liveThrough: number;
  /** Everything before this sequence is covered, older documents included. */
  coveredThrough: number;
  /** Share of the documents that were there before the index which have been looked at, 0..1. */
  backfillProgress: number;
  /** Texts that were embedded since the range was opened. */
  produced: number;
  /** Documents that will be tried again, and those that are left until they change. */
  retrying: number;
  failed: number;
  /** Why nothing goes on at the moment: a fault of whoever makes the parts. */
  blocker: { code: string; message: string } | undefined;
}

/** A document whose part could not be made. */
export interface ProductionFailure {
  readonly attempts: number;
  /** Wall time of the next attempt, milliseconds since 1970; null when there is none. */
  readonly nextMs: number | null;
  readonly code: string;
  readonly reason: string;
  /** Of the document as it was then. */
  readonly sequence: number;
}

/** Documents that are to be tried again, of those whose part could not be made. */
export interface RetriedDocuments {
  readonly most: number;
  /** The ordinal of one document alone. */
  readonly only?: number | undefined;
  /** The ordinal at which an earlier call has ended. */
  readonly from?: number | undefined;
}

export interface Retried {
  readonly count: number;
  /** The key of the first document that is left; undefined when there is none. */
  readonly nextKey: string | undefined;
}

/** Makes the parts that one index of a range is built from, out of the documents. */
export interface PartProducer {
  report(): ProductionReport;
  /** Documents up to this sequence are shown, with their parts, by whoever has read the range up to `read`. */
  shownThrough(read: number): number;
  /** Documents without their part, or with an older one, because what it would be made from is damaged. */
  readonly damaged: number;
  /** Nothing waits to be made. */
  readonly isAtRest: boolean;
  /** The range has committed rows. */
  wake(): void;
  /** Resolves when documents up to `sequence` are covered, but for those that the index was made over. */
  waitFor(sequence: number, signal?: AbortSignal): Promise<void>;
  /** Documents of these sequences that could not be given their parts, of the last ones that failed. */
  failuresWithin(firstSequence: number, lastSequence: number): number;
  /** Why a document has no part; undefined where nothing has failed. */
  failureOf(ordinal: number): ProductionFailure | undefined;
  /** Has parts that could not be made tried again now. */
  retryFailed(which: RetriedDocuments): Promise<Retried>;
  /** Ends after the batch under way, which is given up. */
  close(): Promise<void>;
}

/** The range of a producer, as the producer sees it. */
export interface ProducedRange {
  readonly stored: RangeReader;
  head(): number;
  /** Resolves when there is room for writes, or when the signal is aborted. */
  whenKeepsUp(signal: AbortSignal): Promise<void>;
}

/** The producer of an enrichment. */
export type OpenArtifactProducer = (range: ProducedRange, definition: ArtifactDefinition) => PartProducer;

/** The producer of an index whose parts the server makes; undefined for any other. */
export type OpenPartProducer = (range: ProducedRange, definition: IndexDefinition) => PartProducer | undefined;
