import type { ConstrainedTable } from './constrained-table.ts';

/** Number of a range, given by the catalog and never used again. */
export type RangeId = number;

/** A file that may refuse writes alone: that of a range, or the catalog. */
export type RefusedFile = RangeId | 'catalog';

/** How the documents of a range expire. */
export interface RangeTtl {
  /** Absent where they do not. */
  readonly durationMs?: number | undefined;
  /** Dotted path of the field that holds the TTL base of a document; absent where nobody but the writes can tell. */
  readonly field?: string;
}

/** Names a request, so that it takes effect once however often it is sent. */
export interface RequestKey {
  /** The client that chose the key; keys of different clients never collide. */
  client: string;
  key: string;
  /** SHA-256 of what was asked for. */
  bodyHash: Uint8Array;
}

/** Version of the entry format; entries of another are refused. */
export const entryFormat = 1;

type EntryKind = 'rows' | 'prepare' | 'commit' | 'abort';

/** The members of every entry of a range log beside its rows. */
interface EntryHeader {
  format: typeof entryFormat;
  kind: EntryKind;
  rangeId: RangeId;
  generation: number;
  /** Term of the leader that made the entry; 0 on a single node. */
  epoch: number;
  /** Place in the range's log, from 1 without gaps. */
  index: number;
  requestId: string;
  /** Wall time of the request, milliseconds since 1970. */
  timeMs: number;
}

/** Window of a linear merge: keys in (`afterKey`, `toKey`] are made equal to the frame's puts. */
export interface MergeWindow {
  /** Exclusive; '' for the start of the range. */
  afterKey: string;
  /** Inclusive. */
  /** null: there is no end. */
  toKey: string | null;
  /** Evaluate and report, change nothing. */
  dryRun: boolean;
  /** The documents that are there for whoever merges; all of them where it is absent. */
  permitted?: PermittedRows;
}

/** Documents of a range that whoever writes may see, as they were at one sequence. */
export interface PermittedRows {
  /** A document that is newer is one that nobody has looked at: the merge fails with `transaction_conflict`. */
  throughSequence: number;
  /** Those of documents that are seen and have not expired, as `lib/ordinal-bits.ts` has them. */
  ordinals: Uint8Array;
  /** They were looked at together with parts of theirs: nothing of the range may be newer. */
  withParts: boolean;
}

/** The changes of one request to one range. */
export interface RangeWrite {
  rangeId: RangeId;
  /**
   * Document frame of puts, deletes and transforms, evaluated in row order; undefined when there are only conditional
   * deletes. The buffer is given away: the caller must not touch it again.
   */
  frame?: Uint8Array<ArrayBuffer>;
  merge?: MergeWindow;
  /** Deletes that happen only if the document still has this sequence; others are skipped. */
  deleteIf?: readonly ConditionalDelete[];
  /** Dotted path of the field by which the TTL bases of the frame were read; that of the range counts. */
  ttlField?: string;
  /**
   * The frame has puts with the ordinals that a backup has given them, each with all of its document's parts behind it, and
   * deletes by ordinal: rows of a restore.
   */
  keepsOrdinals?: boolean;
  /** The graph indexes of the table, where it has some. */
  graphs?: GraphWrites;
  /** Lists of edges from which something is taken; without a frame. */
  edgeUpkeep?: readonly EdgeUpkeep[];
  /** The frame names documents by transforms without operations: only their TTL bases are read again. */
  ttlBasesOnly?: boolean;
}

/** The facts about a table's graph indexes that the writer needs. */
export interface GraphWrites {
  indexes: readonly GraphRules[];
  /** The table's ranges, in order. */
  rangeIds: readonly RangeId[];
  /**
   * Last sequence of each of them: edges that were written by then leave with a document that the write deletes, and so
   * do those that the write itself makes.
   */
  heads: readonly number[];
  /**
   * Of a merge, which compares with what is there, and of transforms, which leave some of it: target -> what leads to it and was
   * written by this sequence is gone.
   */
  removed?: readonly (readonly [target: string, through: number])[];
}

export interface GraphRules {
  name: string;
  partId: number;
  ttlMs: number | undefined;
  /** Edges of a document; 0 for no bound. */
  maxEdges: number;
  /** Members that hold the keys of targets. */
  fields: readonly { type: string; path: string }[];
  /** Types whose edges lead from children to parents. */
  treeTypes: readonly string[];
}

/** The parents that a document has by one type of edges after a write. */
export interface TreeChange {
  rangeId: RangeId;
  partId: number;
  type: string;
  source: string;
  /** `since`: the sequence of the range from which on the edge was there; 0 where the write makes it. */
  targets: readonly { key: string; since: number }[];
}

/** Takes from the edges of some documents what has expired, and what leads to documents that were deleted. */
export interface EdgeUpkeep {
  partId: number;
  keys: readonly string[];
  /** By the time of creation, milliseconds since 1970. */
  expiredAtOrBeforeMs?: number | undefined;
  /** Target -> what was written by this sequence of the range. */
  removed?: readonly (readonly [target: string, through: number])[];
  /** A list stays where nothing is left in it: its document is not taken for one from before the index. */
  keepsEmpty?: boolean;
}

interface ConditionalDelete {
  key: string;
  sequence: number;
}

/** A document that the request depends on; `version` 0 asserts that there is none (or an expired one). */
export interface ReadAssertion {
  rangeId: RangeId;
  key: string;
  version: number;
  /** Name of the table, for the conflict's report. */
  table?: string;
  /** Parts of the document that were read as well: part id -> sequence, 0 where it had none. */
  parts?: readonly (readonly [partId: number, sequence: number])[];
}

/** One request: all of it happens or nothing, over any number of ranges. */
export interface WriteRequest {
  writes: readonly RangeWrite[];
  readSet?: readonly ReadAssertion[];
  /** Relational tables whose rows the request may touch, with all of their ranges. */
  constrained?: readonly ConstrainedTable[];
  /** All that the request changes in trees, where it has been found to leave them trees; the read set holds by what. */
  provenTrees?: readonly TreeChange[];
  requestId: string;
  /** Of a request that takes effect once, however often it is sent. */
  key?: RequestKey | undefined;
  /** Wall time of the request in milliseconds: TTL base of documents without one, and what "expired" is measured against. */
  timeMs: number;
  /** The same instant as RFC 3339 text, for `$currentDate`. */
  timestamp: string;
}

export interface WriteCounts {
  /** Puts of keys that did not exist. */
  inserted: number;
  /** Puts over existing documents. */
  updated: number;
  deleted: number;
  /** Transforms that found, or with `upsert` made, their document. */
  transformed: number;
  /** Transforms that changed nothing because no operation fitted the value that it found. */
  failed: number;
  /** Merge: documents written because they were new or different. */
  upserted: number;
  /** Merge: documents that were equal already. Conditional deletes: documents that had changed. */
  skipped: number;
  /** Merge: stored keys seen in the window. */
  keysScanned: number;
  /** Merge dry run: keys that would be deleted, at most `deletedIdsMax`. */
  deletedIds: string[];
}

/** A merge's dry run names at most this many keys. */
export const deletedIdsMax = 10_000;

export function zeroCounts(): WriteCounts {
  return {
    inserted: 0,
    updated: 0,
    deleted: 0,
    transformed: 0,
    failed: 0,
    upserted: 0,
    skipped: 0,
    keysScanned: 0,
    deletedIds: [],
  };
}

export interface RangeTotals {
  /** Live rows, expired but unswept ones included. */
  documents: number;
  /** Bytes of their bodies. */
  bytes: number;
}

/** Hears of entries that were applied; `images` is always there. */
export type EntryListener = (entry: AppliedWrite & { images: PostImages }) => void;

/** Rows as they were stored, in sequence order: what indexes are fed with. */
export interface PostImages {
  /** Document frame of puts and deletes with ordinals, sequences and checksums filled. */
  frame: Uint8Array<ArrayBuffer>;
  firstSequence: number;
  lastSequence: number;
}

/** A stored document, or a part of it, that does not match its checksum. */
export interface DamagedRow {
  /** Of the document, as its ordinal. */
  key: string;
  ordinal: number;
  reason: string;
}

/** Post-images read back, and the documents among them that are damaged. */
export interface FeedPage extends PostImages {
  damaged: DamagedRow[];
}

/** The durable result of one request in one range. */
export interface AppliedWrite {
  rangeId: RangeId;
  header: EntryHeader;
  counts: WriteCounts;
  /**
   * Undefined when nothing changed, such a request takes no sequence and no place in the log; and when the range has yet
   * to take the rows.
   */
  images: PostImages | undefined;
  /** The request was applied before, under the same key; `lastSequence` is of that time, undefined when nothing changed. */
  repeats?: { lastSequence: number | undefined };
  /** The write is committed, but this range takes its rows only when its disk has room again. */
  isLater?: true | undefined;
  totals: RangeTotals;
}
