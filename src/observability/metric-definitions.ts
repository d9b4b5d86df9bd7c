export interface MetricDefinition {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram, in the unit of its name. */
  readonly buckets?: readonly number[];
}

const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;
const counts = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] as const;

function counter(name: string, help: string, labels: readonly string[] = []): MetricDefinition {
  return { kind: 'counter', name, help, labels };
}

function gauge(name: string, help: string, labels: readonly string[] = []): MetricDefinition {
  return { kind: 'gauge', name, help, labels };
}

function histogram(
  name: string,
  help: string,
  labels: readonly string[] = [],
  buckets: readonly number[] = seconds,
): MetricDefinition {
  return { kind: 'histogram', name, help, labels, buckets };
}

/** Every metric: base units in the name, counters end in `_total`, no label takes values without a bound. */
export const metricDefinitions = {
  buildInfo: gauge('sundew_build_info', 'Always 1; the labels say what runs.', ['version', 'bun']),
  processCpu: counter('process_cpu_seconds_total', 'CPU time of the process.'),
  processMemory: gauge('process_resident_memory_bytes', 'Resident memory of the process.'),
  processDescriptors: gauge('process_open_fds', 'Descriptors that the process has open.'),
  processDescriptorsMax: gauge('process_max_fds', 'Descriptors that the process may have open.'),
  memoryByPart: gauge('sundew_memory_bytes', 'Memory of the process by the part that holds it, where it can be told.', [
    'part',
  ]),
  processStart: gauge('process_start_time_seconds', 'Start of the process, seconds since 1970.'),
  eventLoopStall: histogram(
    'sundew_event_loop_stall_seconds',
    'How late a timer of the main thread fired.',
    [],
    [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1],
  ),
  eventLoopStallMax: gauge('sundew_event_loop_stall_max_seconds', 'Longest stall since the process started.'),

  httpRequests: counter('sundew_http_requests_total', 'Answered requests; `499` of those whose clients left before.', [
    'route',
    'method',
    'code',
  ]),
  httpDuration: histogram(
    'sundew_http_request_duration_seconds',
    'Arrival to answer; a stream counts to its first byte.',
    ['route', 'method'],
  ),
  httpConnections: gauge('sundew_http_connections', 'Connections of clients that are open, idle ones included.'),
  httpInFlight: gauge('sundew_http_requests_in_flight', 'Requests being answered.'),
  authFailures: counter('sundew_auth_failures_total', 'Requests that were refused for their credential.', ['reason']),
  faults: counter('sundew_faults_total', 'Faults of the server itself that were answered 500.'),
  configReloads: counter('sundew_config_reloads_total', 'Configuration reloads.', ['result']),

  queries: counter('sundew_queries_total', 'Queries.', ['result']),
  queryStage: histogram('sundew_query_stage_duration_seconds', 'Stages of a query.', ['stage']),
  enrichedTexts: counter('sundew_enriched_texts_total', 'Texts of documents that were embedded for managed indexes.'),
  slowQueries: counter('sundew_slow_queries_total', 'Queries slower than log.slow_query.'),

  batchDocuments: counter('sundew_batch_docs_total', 'Documents of write requests.', ['op', 'result']),
  writerCommit: histogram('sundew_wal_fsync_duration_seconds', 'One commit of the storage writer, with its fsync.'),
  writerGroup: histogram('sundew_writer_group_requests', 'Requests that shared one commit.', [], counts),
  pacedWrites: counter('sundew_paced_writes_total', 'Writes that waited because indexing was behind.'),
  backpressure: counter('sundew_backpressure_total', 'Writes answered 503 because indexing was behind.'),

  tables: gauge('sundew_tables', 'Tables.'),
  ranges: gauge('sundew_ranges', 'Key ranges.'),
  openRanges: gauge('sundew_open_ranges', 'Key ranges whose files and indexes are open.'),
  openRangesMax: gauge('sundew_open_ranges_max', 'Key ranges that may be open at one time.'),
  rangesOpened: counter('sundew_ranges_opened_total', 'Openings of key ranges.'),
  rangesEvicted: counter(
    'sundew_ranges_evicted_total',
    'Key ranges that were closed to make room, or because nobody used them.',
  ),
  documents: gauge('sundew_documents', 'Live documents.', ['table']),
  storedBytes: gauge('sundew_stored_bytes', 'Bytes of stored documents.', ['table']),
  logHead: gauge('sundew_log_head_sequence', 'Highest committed sequence over the ranges of a table.', ['table']),

  indexLag: gauge('sundew_index_lag_sequence', 'Sequences that an index has yet to apply, over all ranges.', [
    'table',
    'index',
  ]),
  indexBacklog: gauge('sundew_index_backlog_bytes', 'Bytes of written rows that indexes do not show yet.'),
  indexApply: histogram('sundew_index_apply_duration_seconds', 'One frame handed to an index.', ['kind']),
  indexCommit: histogram('sundew_index_commit_duration_seconds', 'One commit of an index.', ['kind']),
  indexCheckpoint: histogram('sundew_index_checkpoint_duration_seconds', 'One checkpoint of an index.', ['kind']),
  indexSkipped: counter('sundew_index_skipped_documents_total', 'Documents that an index could not take.', ['kind']),
  indexRebuilds: counter('sundew_index_rebuilds_total', 'Rebuilds of an index from its documents.', ['reason', 'kind']),

  modelLoads: histogram('sundew_model_load_duration_seconds', 'Loading a model into a process of its own.', ['kind']),
  modelUnloads: counter('sundew_model_unloads_total', 'Models that were unloaded.', ['reason']),
  modelCrashes: counter('sundew_model_crashes_total', 'Processes of models that ended while they were wanted.', [
    'kind',
  ]),
  modelsLoaded: gauge('sundew_models_loaded', 'Models that are loaded now.', ['kind']),
  modelMemory: gauge('sundew_model_resident_memory_bytes', 'Memory of the processes of models.', ['kind']),
  generations: counter('sundew_generations_total', 'Generations by how they ended.', ['model', 'finish_reason']),
  generationsRunning: gauge('sundew_generations_running', 'Generations that a model works on.', ['model']),
  generationsWaiting: gauge('sundew_generations_waiting', 'Generations that wait for a place in a model.', ['model']),
  generationDuration: histogram('sundew_generation_duration_seconds', 'Arrival to the last token.', ['model']),
  firstToken: histogram('sundew_generation_first_token_seconds', 'Arrival to the first token of a stream.', ['model']),
  perToken: histogram(
    'sundew_generation_time_per_token_seconds',
    'Mean time of a token of a stream after its first one, by answer.',
    ['model'],
  ),
  prefillDuration: histogram('sundew_generation_prefill_seconds', 'Reading a prompt.', ['model']),
  decodeDuration: histogram('sundew_generation_decode_seconds', 'Decoding all tokens of an answer.', ['model']),
  promptTokens: counter('sundew_prompt_tokens_total', 'Tokens of prompts.', ['model']),
  cachedPromptTokens: counter('sundew_cached_prompt_tokens_total', 'Tokens of prompts that need not be read again.', [
    'model',
  ]),
  generatedTokens: counter('sundew_generated_tokens_total', 'Tokens of answers.', ['model']),
  inferencePermits: gauge('sundew_inference_requests_running', 'Requests that work with models now.'),
  inferenceItems: counter('sundew_inference_items_total', 'Texts, pairs, rows and chunks that were answered.', [
    'operation',
  ]),
  inferenceTokens: counter('sundew_inference_tokens_total', 'Tokens that models read.', ['operation']),
  inferenceDuration: histogram('sundew_inference_duration_seconds', 'One answered request to a model.', ['operation']),
  providerRequests: counter(
    'sundew_provider_requests_total',
    'Requests to models, `this_server` among the providers.',
    ['provider'],
  ),
  providerFailures: counter('sundew_provider_failures_total', 'Requests to models that failed.', ['provider']),
  providerRetries: counter(
    'sundew_provider_retries_total',
    'Requests to other servers of models that were sent again.',
    ['provider'],
  ),
  providerTokens: counter('sundew_provider_tokens_total', 'Tokens that providers have counted.', ['provider']),
  providerWaits: counter(
    'sundew_provider_waits_total',
    'Waits for a rate limit, a slot, a breaker or another attempt.',
    ['provider'],
  ),
  providerWaited: counter('sundew_provider_wait_seconds_total', 'Time of these waits.', ['provider']),
  providerBreaker: gauge('sundew_provider_breaker_open', '1 while a provider is left alone because it failed.', [
    'provider',
  ]),
  mediaBlocked: counter('sundew_media_blocked_total', 'Addresses of media that were not asked, by reason.', ['reason']),
  inferenceRefused: counter('sundew_inference_refused_total', 'Requests turned away because all permits were taken.'),

  transactions: gauge('sundew_transactions_open', 'Transaction sessions that are kept.'),
  transactionBytes: gauge('sundew_transactions_bytes', 'Memory that transaction sessions hold.'),

  diskFree: gauge('sundew_disk_free_bytes', 'Space that is left for the data directory.'),
  diskSize: gauge('sundew_disk_size_bytes', 'Size of the file system of the data directory.'),
  walBytes: gauge('sundew_wal_bytes', 'Write-ahead logs of the catalog and of open key ranges, with space kept ahead.'),
  replayingRanges: gauge('sundew_replaying_ranges', 'Ranges whose indexes have yet to replay after an unclean stop.'),
  damagedDocuments: counter('sundew_damaged_documents_total', 'Stored documents and vectors that were found damaged.'),
  raisedFaults: counter('sundew_raised_faults_total', 'Faults of the disk, of files and of indexes that were met.', [
    'kind',
  ]),
  standingFaults: gauge('sundew_standing_faults', 'Faults that stand now.', ['kind']),
  ttlDeleted: counter('sundew_ttl_deleted_total', 'Expired documents that were deleted.'),
  ttlPaused: gauge('sundew_ttl_paused', '1 while a jump of the clock pauses deletion.'),
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof metricDefinitions;
