import { assert } from '../lib/assert.ts';
import { hourMs, KiB, MiB, minuteMs, secondMs } from '../lib/units.ts';
import { nameCharsMax } from '../protocol/names.ts';

/**
 * Every bound of the product, with its unit in its name. What is checked against each other stands at the end.
 * A bound that an operator may move is also an option (`options.ts`) with this value as its default.
 */

export const limits = {
  // Request bodies
  /** Batch, multi-table batch, commit and merge; after inflation. */
  batchBodyBytesMax: 64 * MiB,
  queryBodyBytesMax: 4 * MiB,
  /** One query of a body: it is read in one go, which must not hold the event loop. */
  queryBytesMax: 1 * MiB,
  /** Every other route that takes a body. */
  smallBodyBytesMax: 1 * MiB,
  /** Conversations, with their images and sounds inline. */
  generateBodyBytesMax: 112 * MiB,
  jsonDepthMax: 64,
  /** Time for a body; every `bodyBytesPerSecondMin` bytes that arrive buy one second more. */
  bodyDeadlineMs: 60 * secondMs,
  bodyBytesPerSecondMin: 16 * KiB,
  /** An idle connection is kept so long: longer than proxies and clients keep theirs. */
  keepAliveMs: 75 * secondMs,
  requestDeadlineMs: 300 * secondMs,
  concurrentRequestsMax: 4_096,
  /** Bytes of the bodies of all requests in flight; fewer where the process may use less memory, see `memoryShares`. */
  bodiesInFlightBytesMax: 512 * MiB,
  /** The same of large answers, from the reading of their documents until their clients have taken them. */
  answersInFlightBytesMax: 2_048 * MiB,
  /** A smaller answer is not counted among them. */
  smallAnswerBytesMax: 256 * KiB,
  /** How long a large answer waits for the others before it is refused. */
  answerWaitMs: 5 * secondMs,
  requestIdBytesMax: 128,

  // Names and keys
  /** Of tables and of indexes. */
  nameCharsMax,
  descriptionCharsMax: 500,
  prefixCharsMax: 255,
  patternCharsMax: 500,
  keyBytesMax: 1024,

  // Writes
  batchKeysMax: 100_000,
  documentBytesMax: 16 * MiB,
  documentMembersMax: 10_000,
  memberNameBytesMax: 65_535,
  transformPathSegmentsMax: 32,
  readSetKeysMax: 100_000,
  idempotencyKeyCharsMax: 255,
  /** Transactions that are put together over several requests: how many at a time, and what one and all of them hold. */
  transactionsMax: 1_024,
  transactionBytesMax: 64 * MiB,
  allTransactionsBytesMax: 512 * MiB,
  /** One that nobody has used for so long is lost. */
  transactionLeaseMs: minuteMs,
  savepointsMax: 64,

  // Graphs
  edgesPerDocumentMax: 2 ** 20,
  edgeTypesMax: 1_000,
  edgeTypeBytesMax: 256,
  graphStartsMax: 1_000,
  graphDepthMax: 50,
  graphPathsMax: 100,
  /** Ancestors of a document in a tree. */
  graphTreeDepthMax: 1_000,
  /** Of one query. */
  graphSearchesMax: 16,
  graphResultsMax: 10_000,
  graphPatternElementsMax: 16,
  /** Matches of a pattern that are counted before its answer is partial. */
  graphMatchesMax: 1_000_000,
  /** Edges and nodes that one graph search looks at before its answer is partial. */
  graphEdgesSeenMax: 20_000_000,
  graphNodesSeenMax: 2_000_000,
  /** Nodes whose documents are looked up to decide whether they are shown. */
  graphNodesCheckedMax: 20_000,
  graphSearchMs: 10 * secondMs,
  /** Size of a graph for an algorithm over the whole of it; a larger graph is refused. */
  graphAlgorithmEdgesMax: 50_000_000,
  graphAlgorithmMs: 10 * minuteMs,
  graphAlgorithmIterationsMax: 1_000,
  graphAlgorithmHiddenMax: 1_000_000,

  // Tables
  tablesMax: 10_000,
  shardsPerTableMax: 20,
  indexesPerTableMax: 64,
  relationalColumnsMax: 256,
  sqlRowsMax: 10_000,
  sqlAnswerBytesMax: 16 * MiB,
  sqlMemoryBytesMax: 256 * MiB,
  /** Ranges whose files a statement reads where they are; SQLite has no more open at a time. Of others it gets a copy. */
  sqlAttachedRangesMax: 10,
  sqlProcessesMax: 2,
  /** Fewer where the process may have fewer descriptors. */
  openRangesMax: 1_024,
  /** Descriptors that an open range may take, and what is kept for connections and the rest. */
  rangeDescriptors: 8,
  otherDescriptors: 512,
  /** Machine code takes memory of its own in huge pages, where the process may have so much. */
  hugePagesMemoryBytesMin: 2_048 * MiB,
  /** The start leaves until then what its first queries need not wait for. */
  afterStartMs: 2 * secondMs,
  /** Ranges that stay open however long nobody uses them, and after what time without use the others are closed. */
  warmRangesMax: 64,
  rangeIdleMs: minuteMs,
  vectorDimensionMax: 16_384,
  /** Characters of the template of an index, and of the path of a field. */
  templateCharsMax: 64 * 1_024,
  fieldPathCharsMax: 1_024,
  /** How long the parsed form of a template is kept after its last use. */
  templateKeptMs: 5 * minuteMs,
  /** Texts, and their bytes, that one request for vectors carries; what a kill makes again. */
  enrichmentBatchItems: 64,
  enrichmentBatchBytes: 256 * 1_024,
  /** Chunks of one document, and the bytes of their vectors. */
  documentChunksMax: 4_096,
  documentVectorsBytesMax: 8 * MiB,
  /** Documents in one batch of a producer that is asked for each of them by itself. */
  producerBatchItems: 8,
  artifactsPerTableMax: 64,
  /** Tries of a text that its embedder refuses, before it is left until its document changes. */
  enrichmentAttemptsMax: 4,
  /** Batches of documents that were there before their index that are embedded at one time. */
  backfillBatchesMax: 2,
  sparseChunkMax: 65_536,

  // Models
  inferenceConcurrency: 64,
  loadedModelsMax: 8,
  modelKeepAliveMs: 5 * minuteMs,
  modelLoadMs: 5 * minuteMs,
  modelStallMs: 2 * minuteMs,
  /** Silence of a model over its work after which the server says that it is not ready. */
  modelStuckMs: 15 * secondMs,
  modelCheckMs: 30 * secondMs,
  contextTokensMax: 8_192,
  /** Requests to models, but for those that carry media. */
  inferenceBodyBytesMax: 32 * MiB,
  /** Texts of one request, as clients of the OpenAI interface know it. */
  inferenceTextsMax: 2_048,
  /** Characters of one of them: it is cut into tokens in one go. */
  inferenceTextCharsMax: 1 * MiB,
  /** Characters of a text to be chunked. */
  chunkTextCharsMax: 16 * MiB,
  chunkTokensMax: 1_000_000,
  chunkCacheMs: 2 * minuteMs,
  /** Chunks of all answers that are kept. */
  chunkCacheChunksMax: 1_000_000,
  /** How long responses are kept that may be gone on with. */
  storedResponseMs: 60 * minuteMs,
  /** Characters of all of them. */
  storedResponseCharsMax: 64 * MiB,
  predictorRowsMax: 100_000,
  parallelSequences: 4,
  mediaBytesMax: 100 * MiB,
  mediaDeadlineMs: 30 * secondMs,
  imageEdgeMax: 2_048,
  /** A stream of events that has nothing to say says so this often. */
  streamHeartbeatMs: 10 * secondMs,
  /** Bytes of a stream that wait for its client to read. */
  streamUnsentBytesMax: 1 * MiB,

  // Queries
  queryLimitMax: 10_000,
  /** Bytes of the documents that one query shows or leaves out; all of them are in memory at once. */
  queryDocumentBytesMax: 512 * MiB,
  /** Matches of a ranked query that are counted; beyond, the total is a lower bound. */
  totalExactUpTo: 1_000,
  queryNodesMax: 1_024,
  queryNestingMax: 64,
  /** Characters of all texts to be searched for in one query. */
  queryTextCharsMax: 65_536,
  /** Groups of a table, terms of a group, words of a term. */
  synonymGroupsMax: 10_000,
  synonymTermsMax: 64,
  synonymWordsMax: 8,
  /** Hits of a page that is highlighted, or explained. */
  highlightHitsMax: 1_000,
  explainHitsMax: 100,
  /** Hits of a query that a model scores once more. */
  rerankHitsMax: 1_000,
  /** Characters of the text of such a hit that are read: more than any such model takes in. */
  rerankTextCharsMax: 65_536,
  /** Texts that queries were embedded of, for how long and how many bytes of their vectors. */
  queryVectorsKeptMs: 120_000,
  queryVectorsBytesMax: 32 * 1_024 * 1_024,
  multiQueryMax: 100,
  /** Tables that one query joins. */
  joinsMax: 4,
  /** Rows of the right side of a join that are held at one time, and the characters of their documents. */
  joinRightRowsMax: 100_000,
  joinRightCharsMax: 64 * MiB,
  /** Hits of the left side that are looked at; beyond, the answer is partial. */
  joinLeftRowsMax: 100_000,
  /** Pairs of rows that a join without equality compares. */
  joinComparisonsMax: 20_000_000,
  /** In one query, nested ones included. */
  aggregationsMax: 256,
  aggregationNestingMax: 8,
  /** Buckets in one answer, nested ones included; the engine keeps the same number. */
  aggregationBucketsMax: 65_536,
  aggregationRangesMax: 1_024,
  aggregationFieldsMax: 8,
  queryDeadlineMs: 30 * secondMs,

  /** How long a query waits for an index that has just been opened to show what it showed before. */
  indexReplayWaitMs: 5 * secondMs,
  /** How long a query may ask to wait for its indexes. */
  indexWaitMsMax: 60 * secondMs,

  // Paging through documents: no statement is held across pages
  scanPageRowsMax: 256,
  scanPageBytesMax: 1 * MiB,

  // Indexing
  /** Bytes that wait for an index before writes wait for it. */
  backlogBytesMax: 256 * MiB,
  /** How long a write waits for an index that is too far behind before it is answered `backpressure`. */
  backlogWaitMs: 60 * secondMs,
  visibilityDelayMs: 200,
  /** While rows keep coming and commits are slow, up to this. */
  busyVisibilityDelayMs: 2 * secondMs,
  /** Each commit makes a segment, and small ones are merged: under load they are as large as memory for one allows. */
  visibilityBytesMax: 32 * MiB,
  checkpointIntervalMs: 30 * secondMs,
  /** Indexes that hold rows that no commit shows (megabytes) at one time; the one written longest ago shows its own. */
  indexWritersMax: 128,
  /** An index rests after this long without a row. */
  writerIdleMs: 5 * secondMs,
  /** The same for an index of vectors, which until then scans its newest rows in every query. */
  vectorWriterIdleMs: 1 * secondMs,
  checkpointBytesMax: 64 * MiB,
  /** An index that was opened is left to its first queries for so long before all of its files are read for damage. */
  verifyDelayMs: 1 * secondMs,
  /** How long a write waits for its `sync_level` before it answers that it is committed and not yet visible. */
  syncWaitMs: 60 * secondMs,

  // A full disk
  /** Room for deletes, committed writes and checkpoints. */
  reserveBytes: 64 * MiB,

  // Integrity
  scrubIntervalMs: 24 * hourMs,

  // Time to live
  ttlSweepIntervalMs: 30 * secondMs,
  ttlSweepRowsMax: 1_000,
  ttlGraceMs: 5 * secondMs,
  clockJumpMs: 1 * hourMs,
  clockJumpPauseMs: 10 * minuteMs,

  // Jobs
  /** How long a job is kept after it has ended. */
  jobsKeptMs: 7 * 24 * hourMs,

  // Stopping
  drainDeadlineMs: 25 * secondMs,
  /** For making indexes durable; what an index lacks then is replayed when its range is next opened. */
  stopCheckpointsMs: 5 * secondMs,
  /** For what follows the drain: indexes, files and models are closed. */
  closeDeadlineMs: 20 * secondMs,
} as const;

/** Which part of the memory that the process may use is at most left to these, unless the operator says otherwise. */
const memoryShares = { bodiesInFlightBytesMax: 1 / 8, answersInFlightBytesMax: 1 / 4 } as const;

/** The bounds of requests together, for a process that may use so much memory; 0 where that is not known. */
export function boundsWithin(memoryBytes: number): Pick<LimitOptions, keyof typeof memoryShares> {
  const within = (name: keyof typeof memoryShares) =>
    memoryBytes === 0 ? limits[name] : Math.min(limits[name], Math.floor(memoryBytes * memoryShares[name]));
  return {
    bodiesInFlightBytesMax: within('bodiesInFlightBytesMax'),
    answersInFlightBytesMax: within('answersInFlightBytesMax'),
  };
}

/** Kubernetes kills a process that has not ended within this time after it asks. */
const orchestratorGraceMs = 30 * secondMs;

/** The bounds, some of them moved by the operator. */
export type LimitOptions = { readonly [Name in keyof typeof limits]: number };

type Relation = readonly [holds: (bounds: LimitOptions) => boolean, promise: string];

const relations: readonly Relation[] = [
  [(b) => b.smallBodyBytesMax <= b.queryBodyBytesMax, 'a query may be larger than a small body'],
  [(b) => b.queryBytesMax <= b.queryBodyBytesMax, 'a body holds at least one query'],
  [(b) => b.queryTextCharsMax < b.queryBytesMax, 'the longest text fits in a query'],
  [(b) => b.queryBodyBytesMax <= b.batchBodyBytesMax, 'a batch is the largest body'],
  [(b) => b.documentBytesMax <= b.batchBodyBytesMax, 'the largest document fits in a batch'],
  [(b) => b.memberNameBytesMax < b.documentBytesMax, 'the longest member name fits in a document'],
  [(b) => b.smallAnswerBytesMax < b.answersInFlightBytesMax, 'some large answers are sent at a time'],
  [(b) => b.answerWaitMs < b.requestDeadlineMs, 'a large answer that waits is sent in time'],
  [(b) => b.transactionBytesMax <= b.allTransactionsBytesMax, 'one transaction leaves room for itself'],
  [(b) => b.batchBodyBytesMax < b.backlogBytesMax, 'one batch does not fill the backlog'],
  [(b) => b.visibilityBytesMax <= b.checkpointBytesMax, 'an index commits at least once a checkpoint'],
  [(b) => b.visibilityDelayMs < b.checkpointIntervalMs, 'an index commits at least once a checkpoint'],
  [(b) => b.queryDeadlineMs < b.requestDeadlineMs, 'a query stops before its request does'],
  [(b) => b.indexReplayWaitMs <= b.indexWaitMsMax, 'a query waits no longer than one may ask'],
  [(b) => b.indexWaitMsMax + b.queryDeadlineMs < b.requestDeadlineMs, 'a query that waits answers in time'],
  [(b) => b.backlogWaitMs + b.syncWaitMs < b.requestDeadlineMs, 'a write that waited answers before it is given up'],
  [(b) => b.bodyDeadlineMs < b.requestDeadlineMs, 'a slow body is answered before its request is given up'],
  [(b) => b.stopCheckpointsMs < b.closeDeadlineMs, 'a stop has time for more than checkpoints'],
  [(b) => b.queryNodesMax >= b.queryNestingMax, 'nesting is bounded by the number of nodes'],
  [(b) => b.drainDeadlineMs < orchestratorGraceMs, 'a drain ends before the orchestrator kills'],
  [(b) => b.nameCharsMax * 4 < 4096, 'a name fits in a path'],
];

/** The first relation between the bounds that does not hold, as a sentence; `undefined` when all hold. */
export function brokenRelation(bounds: LimitOptions): string | undefined {
  return relations.find(([holds]) => !holds(bounds))?.[1];
}

assert(brokenRelation(limits) === undefined, 'the bounds do not conflict');
