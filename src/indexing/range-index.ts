import type { DamagedRow } from '../storage/write-request.ts';

/** The native index of an applier; `src/engine` gives the real one, tests a small one. */
export interface RangeIndex {
  /** The handle that queries name. */
  readonly handle: number;
  /** Sequence held by the last commit when the index was opened. */
  readonly openedAtSequence: number;
  /** Adds the rows of a document frame; they become visible with the next commit. */
  apply(frame: Uint8Array): Promise<ApplyReport>;
  /**
   * Makes everything applied so far visible and records `sequence` in the same commit. `leftOut`: where it has changed,
   * the ordinals of all documents that the commit lacks because what is stored of them was damaged; as durable as the
   * commit.
   */
  commit(sequence: number, leftOut?: Uint32Array): Promise<void>;
  /** `leftOut` of the commit that it was opened at. */
  leftOut(): Iterable<number>;
  /** Writes the last commit durably; the feed below its sequence is no longer needed. */
  checkpoint(): Promise<CheckpointReport>;
  stats(): RangeIndexStats;
  /** Bytes of index files that are in memory and wait for a checkpoint. */
  memoryBytes(): number;
  /** Begins what the index puts off until it rests. */
  rest(): Promise<void>;
  /** Checks the checksums of all files. Fails with `index_damaged`. */
  verify(): Promise<void>;
  /** `close` follows soon: no call waits for background work any more. May be called while another one is under way. */
  closeSoon(): void;
  close(): Promise<void>;
  /** Between dense vectors. */
  readonly links?: IndexLinks | undefined;
}

/** The links of a dense index, which another one of the same documents can take over; `src/engine` gives the real ones. */
export interface IndexLinks {
  /** Writes them into a file; returns its bytes, and 0 without a file where there are none yet. */
  write(path: string): Promise<number>;
  /** Has rows wait without links until `take`. */
  hold(): Promise<void>;
  /** Links what the index shows, as a file says. */
  take(path: string): Promise<LinkReport>;
}

/** How the rows of an index came by their links. */
export interface LinkReport {
  /** Rows with the links of a file. */
  kept: number;
  /** Rows that have lost most of their neighbours and were linked again. */
  relinked: number;
  /** Rows that wait to be linked, as those that are written. */
  left: number;
  /** Why the file was left out. */
  refused?: string;
}

interface ApplyReport {
  rows: number;
  /** Documents that the index could not take; they stay in the table. */
  skipped: { key: string; reason: string }[];
}

export interface CheckpointReport {
  sequence: number;
  bytes: number;
}

export interface RangeIndexStats {
  appliedSequence: number;
  checkpointSequence: number;
  docCount: number;
  /** Vectors of those documents: more than one of a document that is indexed in chunks. */
  vectorCount: number;
  termCount: number;
  segmentCount: number;
  diskBytes: number;
  memoryBytes: number;
}

/** Opens (or creates) the index; `wipe` removes what is there first. */
export type OpenRangeIndex = (wipe: boolean) => Promise<RangeIndex>;

/** The range that an index follows. */
export interface IndexSource {
  /** Last committed sequence of the range. */
  head(): number;
  /** A page of changes after `sequence` in order, or undefined when there is none. */
  read(afterSequence: number): ChangePage | undefined;
  /** Documents of the range at its head, where the index has an entry for each; undefined while that is not known. */
  documents?(): number | undefined;
}

/** Row images in sequence order; `frame` is a document frame of puts and deletes. */
export interface ChangePage {
  firstSequence: number;
  lastSequence: number;
  frame: Uint8Array<ArrayBuffer>;
  /** Documents that cannot be read; the frame has tombstones in their place. */
  damaged?: DamagedRow[];
}
