// Written by `bun run generate` from native/binding. Do not edit.
// SHA-256 of its sources: c0a4da6cc3634a93609efb5ac4c7db4aafb38ec92eb46b080ef06a1455a3bcc2

export interface FrameOptions {
  /** When the request was received, in milliseconds since 1970: the `_timestamp` of documents that bring none. */
  timestampMs: number;
  /** Dotted path of the TTL base; absent when the table has no TTL. */
  ttlField?: string;
  keyBytesMax?: number;
  /** Whether a key may be both deleted and put, in this order; not, unless given. */
  putsDeleted?: boolean;
  /** The table's indexes; needed when a document has `_embeddings` or `_edges`, or a graph index makes edges of fields. */
  vectorIndexes?: Array<VectorIndexSpec>;
}

/** One page of hits, in order. Members of text are there when the plan asks for them. */
export interface NativeHits {
  /**
   * Of each hit: position of its index among the handles of the query, ordinal, version of the document that
   * matched, score, distance by the first dense leg that found it (NaN without one), what each of `legs` scored it
   * (NaN where that one did not find it), and which of its vectors each of `legs` found (NaN also for text). In one
   * array, because each array costs as much as all that is in it.
   */
  numbers: Float64Array;
  total: number;
  /** False: there are at least `total` matches. */
  totalIsExact: boolean;
  /** The time was over before all documents were looked at. */
  isPartial: boolean;
  maxScore: number;
  /** JSON: for each hit an array of its sort values and its position, for a page by cursor. */
  sort?: string;
  /** A JSON object. */
  aggregations?: string;
  /** A JSON array with the tree of each hit's score. */
  explanations?: string;
  /** The legs that made the answer, the text leg as `full_text`. Of plans with vector legs. */
  legs?: Array<string>;
  /** A JSON object: how each leg went. */
  profile?: string;
}

/** Bounds of a scan; what is absent has the documented default. */
export interface ScanLimits {
  /** Levels of objects and arrays. */
  depthMax?: number;
  /** Members of one document, all levels together. */
  membersMax?: number;
  memberNameBytesMax?: number;
  documentBytesMax?: number;
  /** Inserts, deletes, transforms and records of one request. */
  keysMax?: number;
  pathSegmentsMax?: number;
}

export interface ScannedWrite {
  /** The request without its documents, keys and transforms. */
  envelopeJson: string;
  /** Table names for `tables`; one empty name otherwise. */
  sections: Array<string>;
  /**
   * Twelve words an entry: section, kind, key offset, key bytes, body offset, body bytes, flags, offset and bytes of
   * the member `_embeddings`, the same of `_edges`, and how many bytes its edges take in a frame at most.
   */
  entries: Uint32Array;
}

/** Bounds of vectors, written or searched by. */
export interface VectorBounds {
  /** Sum of squares of a dense vector, but for the metric `cosine`: distances of longer ones do not fit a float32. */
  squaresMax: number;
  /** Entries of a sparse vector. */
  sparseEntriesMax: number;
}

/** An index of a table, as far as the vectors of a write concern it. */
export interface VectorIndexSpec {
  name: string;
  /** Its incarnation. */
  id: number;
  /** `managed`: its embedder makes the vectors. `full_text` and `graph`: it takes none. */
  kind: 'dense' | 'sparse' | 'managed' | 'full_text' | 'graph';
  /** Of a dense index. */
  dimension?: number;
  /** Of a dense index: `cosine` refuses vectors of zero norm. */
  metric?: string;
  /** Of a graph index: which edges it takes, as JSON. */
  edgeRules?: string;
}

/** Takes the rows of a document frame; they are seen after the next commit. Answers a JSON report. */
export declare function applyFrame(handle: number, frame: Uint8Array): Promise<string>;

/**
 * Writes the document frame of one section's entries of a scanned request to `output` and answers its length, or the
 * frame itself where it does not fit there.
 * `schemaHandle` is 0 or from `openTableSchema`. The caller provides the memory, so that a frame of many megabytes is
 * not copied on the JavaScript thread; like `bytes` it must be left alone until the promise has settled.
 */
export declare function buildFrame(bytes: Uint8Array, entries: Uint32Array, options: FrameOptions, schemaHandle: number, output: Uint8Array): Promise<number | Uint8Array>;

/** `buildFrame` on the calling thread, for requests of a few tens of kilobytes. */
export declare function buildFrameSync(bytes: Uint8Array, entries: Uint32Array, options: FrameOptions, schemaHandle: number): Uint8Array;

/** Stops a running query within about a thousand documents; it then fails with `query_timeout`. */
export declare function cancel(operation: number): void;

/** Makes the last commit durable. Answers a JSON report. */
export declare function checkpointIndex(handle: number): Promise<string>;

/**
 * Makes the last commits of many indexes durable with few syncs of their file system, and with them everything that was
 * written there before. `disk` is the descriptor of one of its files or directories, opened before that was written and
 * kept open until the promise settles. Checkpoints that have not begun `withinMs` from now are left out. Answers a JSON
 * array: for each index `{done: report}`, `{failed: message}` or `"left"`.
 */
export declare function checkpointIndexes(handles: Array<number>, disk: number, withinMs: number): Promise<string>;

export declare function closeGrammar(grammar: number): void;

/** Gives the handle back at once. Queries that run finish; rows that were not committed are lost. */
export declare function closeIndex(handle: number): Promise<void>;

/** `closeIndex` follows soon: calls that wait for background work end without it. */
export declare function closeIndexSoon(handle: number): void;

/** Gives a handle back. Frames that are being built finish with their schema. */
export declare function closeTableSchema(schemaHandle: number): void;

/**
 * Shows what was applied; `sequence` is the last one of it. `leftOut` has the ordinals of all documents that are left out as of
 * this commit because what is stored of them is damaged; without it they are as before. Answers a JSON report.
 */
export declare function commitIndex(handle: number, sequence: number, leftOut?: Uint32Array | undefined | null): Promise<string>;

/** What queries can do with the fields that a table schema declares: a JSON object of paths. */
export declare function fieldCapabilities(schemaJson: string): string;

/** Whether the token may come next. Throws `unsupported_response_format` where the grammar is too ambiguous. */
export declare function grammarAccepts(grammar: number, token: number): boolean;

/** Goes on behind a token that is accepted. Throws as `grammarAccepts`. */
export declare function grammarCommit(grammar: number, token: number): void;

/** Goes on behind a text; false where the grammar does not allow it. Throws as `grammarAccepts`. */
export declare function grammarCommitText(grammar: number, text: string): boolean;

/** All tokens that may not come next, ascending. Throws as `grammarAccepts`. */
export declare function grammarRefused(grammar: number): Uint32Array;

/**
 * As `graphSearch` for edges of a node or a traversal: the body of the answer as its route gives it, but for the time that
 * it took. Null where the search is not short or its answer not whole.
 */
export declare function graphBodyInline(handles: Array<number>, requestJson: string, removedJson: string): string | null;

/** How often the algorithm that runs under the number `operation` has gone through its graph; 0 where none does. */
export declare function graphIterations(operation: number): number;

/**
 * Runs a graph search over the graph index of each range of a table. `removedJson` maps keys of deleted documents to the
 * sequence of each range up to which edges to them are gone. Answers JSON, at once where the search is short, and by a
 * promise otherwise; `cancel` stops that under the number `operation`, 0 never.
 */
export declare function graphSearch(handles: Array<number>, requestJson: string, removedJson: string, operation: number): string | Promise<string>;

/** For each row of the frame an object of path -> marked fragments, as a JSON array; by the mapping of these options. */
export declare function highlightDocuments(optionsJson: string, planJson: string, highlightJson: string, frame: Uint8Array): Promise<string>;

/** Has the rows of a dense index wait without a graph until `linkIndex`. */
export declare function holdIndex(handle: number): Promise<void>;

/** Ordinals of the documents that are left out of the index, in no order. */
export declare function indexLeftOut(handle: number): Uint32Array;

/** Bytes of index files that are in memory and wait for a checkpoint. */
export declare function indexMemoryBytes(handle: number): number;

/** Numbers about the index, as JSON. */
export declare function indexStats(handle: number): string;

/**
 * Makes one graph of what a dense index shows, with the links that a file of `writeIndexLinks` gives to its vectors. Answers a
 * JSON report.
 */
export declare function linkIndex(handle: number, path: string): Promise<string>;

/** One byte a row of the frame: 1 where the document matches the plan under the mapping of these options. */
export declare function matchDocuments(optionsJson: string, planJson: string, frame: Uint8Array): Promise<Uint8Array>;

/**
 * Whether each name has a match of a user's regular expression in it; linear in their length.
 * Throws `invalid_request` when the pattern cannot be compiled.
 */
export declare function matchNames(pattern: string, names: Array<string>): Array<boolean>;

/**
 * Which documents of the index's newest commit the plan's filters let through, expired ones too: a bit for each
 * ordinal, the first in the lowest bit of the first byte. `cancel` stops it under the number `operation`, 0 never.
 */
export declare function matchingOrdinals(handle: number, planJson: string, operation: number): Promise<Uint8Array>;

/**
 * Moves the machine code of the process to huge pages of memory. Answers the bytes that lie there now: 0 where the
 * system has no such pages.
 */
export declare function moveCodeToHugePages(): Started<undefined, number>;

/**
 * Opens a GBNF grammar for one output. `shown` are control tokens that count as their text.
 * Throws `unsupported_response_format`.
 */
export declare function openGrammar(vocabulary: number, gbnf: string, shown: Array<number>): number;

/**
 * Opens the index in a directory, at its last checkpoint; answers its handle. `optionsJson` has the options of the
 * kind that its member `type` names: `full_text`, `dense`, `sparse` or `graph`. Errors with the codes `index_damaged`
 * and `index_incompatible` mean that the directory is to be emptied and the index built again.
 */
export declare function openIndex(directory: string, optionsJson: string): Promise<number>;

/** Compiles a table schema given as JSON; the handle lives until `closeTableSchema`. */
export declare function openTableSchema(json: string): Promise<number>;

/**
 * Opens the vocabulary of a model: bytes of all tokens, one after another, and how many each of them has. `control` are
 * tokens whose text counts only where a grammar is opened with them.
 */
export declare function openVocabulary(bytes: Uint8Array, lengths: Uint32Array, ends: Array<number>, control: Array<number>): number;

/**
 * The hits of a sorted page in the order of their stored documents: a JSON array of `{hit, sort}`, the index among the
 * given hits and the values that `_sort` shows. `hits_json`: an array of `{key, position, row}`, where `row` is that of
 * the frame for a document that has changed since it was indexed, else null; by the mapping of these options.
 */
export declare function orderPage(optionsJson: string, planJson: string, hitsJson: string, frame: Uint8Array): Promise<string>;

/**
 * Runs a plan over the indexes of a table's ranges. `handles`: the text index of each range. `vectorHandles`: for each
 * leg of the plan its index of each range, leg after leg, 0 for a leg that has its documents with it. `vectors`: the query
 * vectors of the legs, one after another.
 * A query that is sure to be cheap is answered at once, everything else by a promise; `cancel` stops that under the number
 * `operation`, 0 never. `isAlone`: no other caller waits, so that a longer answer at once is better than a promise.
 */
export declare function query(handles: Array<number>, vectorHandles: Array<number>, planJson: string, vectors: Uint8Array, operation: number, isAlone: boolean): NativeHits | Promise<NativeHits>;

/** The JSON text of a stored vector, given as the body of a vector row. */
export declare function renderVector(body: Uint8Array): string;

/** Begins what the index puts off until it rests. */
export declare function restIndex(handle: number): Promise<void>;

/** Checks one JSON text of any type. */
export declare function scanJson(bytes: Uint8Array, limits?: ScanLimits | undefined | null): void;

export declare function scanWrite(bytes: Uint8Array, kind: 'batch' | 'tables' | 'merge', limits?: ScanLimits | undefined | null): Promise<ScannedWrite>;

/** `scanWrite` on the calling thread, for bodies of a few tens of kilobytes. */
export declare function scanWriteSync(bytes: Uint8Array, kind: 'batch' | 'tables' | 'merge', limits?: ScanLimits | undefined | null): ScannedWrite;

export declare function vectorBounds(): VectorBounds;

/**
 * Compares the checksums of all files of the last commit; an error with the code `index_damaged` names those that
 * differ.
 */
export declare function verifyIndex(handle: number): Promise<void>;

/** Writes the links of the graphs of a dense index into a file; answers its bytes, and 0 without a file where there are none. */
export declare function writeIndexLinks(handle: number, path: string): Promise<number>;
