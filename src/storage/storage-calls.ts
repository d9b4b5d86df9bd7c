import type { RemovedTargets } from '../lib/parts/edge-notes.ts';
import type { AccessChange } from './catalog/access-records.ts';
import type {
  EnrichmentRecord,
  IndexRecord,
  JobChange,
  JobRecord,
  NewJob,
  RangeFactsRecord,
  TableDefinition,
  TableRecord,
} from './catalog/catalog-records.ts';
import type { RangeSnapshot } from './range/range-snapshot.ts';
import type { AppliedWrite, FeedPage, RangeId, RangeTtl, RefusedFile, WriteRequest } from './write-request.ts';
import type { CommitReport } from './writer/commit-timings.ts';
import type { DiskCondition } from './writer/disk-space.ts';

export interface WriterStart {
  root: string;
  failpoint: string | undefined;
  /** Bytes kept for a full disk; 0 for none. */
  reserveBytes: number;
}

export interface StartReport {
  /** Writes over several ranges that start-up finished. */
  redone: number;
  /** The last id that the catalog has given to a range. */
  lastRangeId: RangeId;
  /** Ranges that lack a committed write. */
  behind: RangeId[];
  warnings: string[];
}

export interface OpenedRange {
  snapshot: RangeSnapshot;
  warnings: string[];
  /** Acknowledged changes that the range lacks, at least. */
  missingChanges: number;
  /** Parts of the range that nothing in the catalog has, and that nobody asked to be kept. */
  goneParts: number[];
}

export interface NewTable {
  name: string;
  createdMs: number;
  /** JSON of the table's record, whatever its owner keeps there. */
  record: string;
  /** Key intervals in order; the first starts at '', each next where the one before ends, the last ends at null. */
  ranges: readonly { startKey: string; endKey: string | null }[];
  indexes: readonly NewIndex[];
  enrichments?: readonly NewEnrichment[];
  /** Of a table that a restore makes: nobody sees it before it is published. */
  staged?: StagedTable;
}

/** The part ids that a restored table brings along, so that its parts are found under them. */
interface StagedTable {
  /** Its versions are above this sequence. */
  aboveSequence: number;
  lastPartId: number;
  enrichments: TableDefinition['enrichments'];
}

export interface NewEnrichment {
  name: string;
  /** JSON. */
  config: string;
}

export interface NewIndex {
  name: string;
  /** JSON. */
  config: string;
  state: string;
  /** Of an index of vectors: what two indexes have in common that can have the same vectors, such as their dimension. */
  shape?: string | undefined;
  /** The part that a restored index had; the next of the table unless given. */
  partId?: number;
  /** Under which the copied files of a restored index lie; the next one unless given. */
  incarnation?: number | undefined;
}

export interface DroppedIndex {
  name: string;
  /** The shape of the index, when its vectors are to be kept for the next one of this name and shape. */
  keptShape?: string | undefined;
}

export interface TableChangeReport {
  /** All that the table has now. */
  indexes: IndexRecord[];
  enrichments: EnrichmentRecord[];
  /** Parts that nobody will find any more. */
  goneParts: number[];
}

interface IndexChange {
  tableId: number;
  name: string;
  config?: string;
  state?: string;
}

/** Everything that changes a catalog record besides creation; one transaction. */
export interface TableChange {
  tableId: number;
  record?: string;
  addIndexes?: readonly NewIndex[];
  updateIndexes?: readonly Omit<IndexChange, 'tableId'>[];
  dropIndexes?: readonly DroppedIndex[];
  addEnrichments?: readonly NewEnrichment[];
  /** The parts that they have made so far stay theirs. */
  updateEnrichments?: readonly NewEnrichment[];
  /** By name. */
  dropEnrichments?: readonly string[];
}

export interface PurgeReport {
  /** Rows of the change feed removed by this call. */
  removed: number;
  /** Nothing is left to look at for now. */
  done: boolean;
}

/** Several ranges at one instant. */
export interface CutReport {
  cutId: number;
  /** In the order in which they were asked for. */
  ranges: RangeSnapshot[];
  /** The tables of these ranges, as they are at that instant. */
  tables: TableDefinition[];
}

/** A range of a cut. */
export interface CutRange {
  cutId: number;
  rangeId: RangeId;
}

/** A note of a cut range on deleted documents. */
export interface CutRemovedTargets {
  /** The name that the note has in its range. */
  note: string;
  targets: RemovedTargets;
}

export interface CutPageRequest extends CutRange {
  afterSequence: number;
  parts: readonly number[];
}

/** A staged table that takes its name, and the place of the table that has it. */
export interface TablePublication {
  tableId: number;
  name: string;
  /** The table that goes; undefined where there must be none. */
  replaces: number | undefined;
  nowMs: number;
  /** The last sequences of its ranges, where they are known. */
  heads: ReadonlyMap<RangeId, number>;
  /** Noted in the same transaction. */
  job: JobChange;
}

/** The calls of the storage writer. */
export type StorageCalls = {
  start: [WriterStart, StartReport];
  append: [WriteRequest, AppliedWrite[]];
  /** `packsBodies`: what is written from now on is packed with the dictionaries of the range. */
  openRange: [{ rangeId: RangeId; ttl: RangeTtl; packsBodies: boolean }, OpenedRange];
  /** Whether the file of a range is open, or there and begins as it should. */
  looksSound: [{ rangeId: RangeId; generation: number }, { isSound: boolean }];
  setTtl: [{ rangeId: RangeId; ttl: RangeTtl }, undefined];
  /** Copies a range's log into its file without a sync of its own; `isWhole` when all of it was copied. */
  copyLog: [{ rangeId: RangeId }, { isWhole: boolean }];
  /** `isSynced`: the file system was synced since the range's last `copyLog`. */
  closeRange: [{ rangeId: RangeId; isSynced: boolean }, undefined];
  /** The process ends soon: the range is left as after a crash. */
  leaveRange: [{ rangeId: RangeId }, undefined];
  purge: [{ rangeId: RangeId; throughSequence: number }, PurgeReport];
  /** Removes some rows of a part whose definition is gone. */
  dropPart: [{ rangeId: RangeId; partId: number }, { done: boolean }];
  createTable: [NewTable, TableRecord];
  /** Puts copied files in the place of a range's own, as `WritableRanges.adopt` says. */
  adoptRange: [{ rangeId: RangeId; folder: string }, undefined];
  dropTable: [{ tableId: number; nowMs: number; heads: ReadonlyMap<RangeId, number> }, { removed: string[] }];
  publishTable: [TablePublication, { table: TableRecord; removed: string[] }];
  /** Opens several ranges at one instant. `endCut` has to follow. */
  cut: [{ rangeIds: readonly RangeId[] }, CutReport];
  /** Notes on deleted documents to which edges may lead, as they are at the cut. */
  cutRemovedTargets: [CutRange, CutRemovedTargets[]];
  cutPage: [CutPageRequest, FeedPage | undefined];
  endCut: [{ cutId: number }, undefined];
  saveRangeFacts: [{ facts: readonly RangeFactsRecord[] }, undefined];
  changeTable: [TableChange, TableChangeReport];
  addJob: [NewJob, JobRecord];
  changeJob: [JobChange, { changed: boolean }];
  removeExpiredJobs: [{ nowMs: number }, undefined];
  /** Subjects and their grants. */
  changeAccess: [AccessChange, undefined];
  /** Notes the wall time. */
  noteWallClock: [{ nowMs: number }, undefined];
  /** A copy that `StorageEvent` asked for has ended; `failure` is SQLite's code, when it failed. */
  walCheckpointed: [{ path: string; failure?: string }, undefined];
  /** Finishes committed writes, looks whether the disk takes writes again, fills the reserve: a step of it. */
  upkeep: [undefined, { /** When there is more to do; undefined when there is nothing. */ nextMs: number | undefined }];
  checkpoint: [{ rangeId?: RangeId }, undefined];
  close: [undefined, undefined];
};

export type StorageEvent =
  /** The disk failed: the process must stop acknowledging and end. */
  | { kind: 'fatal'; message: string }
  /** The write-ahead log of this file is long and should be copied into it, off the writer's thread. */
  | { kind: 'long-wal'; path: string }
  /** The disk takes no writes any more, or takes them again. */
  | { kind: 'disk'; condition: DiskCondition }
  /** A file refuses writes, for this reason, or takes them again. */
  | { kind: 'refusal'; file: RefusedFile; reason: string | undefined }
  /** A range has taken a committed write later than it was answered. */
  | { kind: 'redone'; write: AppliedWrite }
  /** Commits since the last of these events. */
  | { kind: 'commits'; commits: CommitReport[] };
