import { limits } from './limits.ts';
import { choice, duration, flag, integer, list, size, text, type ValueKind, webAddress } from './value-kind.ts';

const second = 1_000;
const hour = 3_600 * second;
const day = 24 * hour;
const mebibyte = 1024 * 1024;

export interface Option<T> {
  /** Dotted path in the configuration file; also gives the name of the environment variable. */
  readonly key: string;
  /** Command line flag; without one the option is set by file or environment. */
  readonly flag?: string;
  readonly kind: ValueKind<T>;
  /** `undefined` where the option is unset unless given. */
  readonly default: NoInfer<T>;
  readonly help: string;
  /** Never shown or hashed; also read from the file that `<VARIABLE>_FILE` names. */
  readonly secret?: boolean;
  /** Takes effect on SIGHUP; the others need a restart. */
  readonly reloadable?: boolean;
  /** The flag takes no value: giving it turns the option on. */
  readonly isSwitch?: boolean;
  /** Other spellings of the key that a file may use. */
  readonly aliases?: readonly string[];
}

function option<T>(spec: Option<T>): Option<T> {
  return spec;
}

function optional<T>(spec: Omit<Option<T>, 'default'>): Option<T | undefined> {
  return {
    ...spec,
    kind: { ...spec.kind, write: (value) => (value === undefined ? '' : spec.kind.write(value)) },
    default: undefined,
  };
}

/** Every option of the server. File keys, variables, flags, `--help` and docs/configuration.md come from this table. */
export const options = {
  host: option({
    key: 'server.host',
    flag: '--host',
    kind: text(),
    default: '127.0.0.1',
    help: 'Address of the HTTP interface. Nothing asks for a credential, so one that other machines can reach is refused.',
  }),
  port: option({
    key: 'server.port',
    flag: '--port',
    kind: integer(0, 65_535),
    default: 8080,
    help: 'Port of the HTTP interface; 0 takes a free one and logs it.',
  }),
  allowInsecurePublicBind: option({
    key: 'server.allow_insecure_public_bind',
    flag: '--allow-insecure-public-bind',
    kind: flag(),
    isSwitch: true,
    default: false,
    help: 'Listen where other machines can reach it. Only behind a trusted proxy with TLS and authentication.',
  }),
  allowedHosts: option({
    key: 'server.allowed_hosts',
    flag: '--allowed-hosts',
    kind: list('name'),
    default: [],
    help: 'Names that requests may give as their host, besides loopback names and addresses; others get 403.',
  }),
  allowedOrigins: option({
    key: 'cors.allowed_origins',
    flag: '--allowed-origins',
    kind: list('origin'),
    default: [],
    help: 'Origins of web pages that may use the interface, such as `https://app.example.org`; `*` for all. Others get 403.',
  }),
  keepAliveMs: option({
    key: 'server.keep_alive',
    kind: duration(10 * second, 250 * second),
    default: limits.keepAliveMs,
    help: 'How long an idle connection stays open. Longer than that of a proxy in front, so that the proxy closes first.',
  }),
  stopDelayMs: option({
    key: 'server.stop_delay',
    flag: '--stop-delay',
    kind: duration(0, hour),
    default: 0,
    help: 'How long a stop goes on serving after it has turned not ready, so that load balancers can look elsewhere.',
  }),
  dataDir: option({
    key: 'storage.data_dir',
    flag: '--data-dir',
    kind: text('path'),
    default: './data',
    help: 'Directory of all data; made when missing, held by one process at a time.',
    aliases: ['data_dir', 'storage.local.base_dir'],
  }),
  reserveBytes: option({
    key: 'storage.reserve',
    kind: size(0, 64 * 1024 * mebibyte),
    default: limits.reserveBytes,
    help: 'Room that is kept in the data directory for a full disk: deletes, drops, committed writes and checkpoints get it.',
  }),
  metricsHost: option({
    key: 'metrics.host',
    flag: '--metrics-host',
    kind: text(),
    default: '127.0.0.1',
    help: 'Address of /metrics, /healthz and /readyz. The metrics name tables.',
  }),
  metricsPort: option({
    key: 'metrics.port',
    flag: '--metrics-port',
    kind: integer(0, 65_535),
    default: 4200,
    help: 'Port of /metrics, /healthz and /readyz; 0 takes a free one and logs it.',
    aliases: ['metrics_port', 'health_port'],
  }),
  drainDeadlineMs: option({
    key: 'server.drain_deadline',
    flag: '--drain-deadline',
    kind: duration(0, hour),
    default: limits.drainDeadlineMs,
    help: 'How long a stop waits for requests in flight.',
  }),
  readyAfterReplay: option({
    key: 'server.ready_after_replay',
    kind: flag(),
    default: true,
    help: 'Whether /readyz answers 503 after an unclean stop until the indexes show again what they showed. Queries before that answer `partial`.',
  }),
  logLevel: option({
    key: 'log.level',
    flag: '--log-level',
    kind: choice(['debug', 'info', 'warn', 'error']),
    default: 'info',
    help: 'Least level that is logged; `debug` has a line for every request.',
    reloadable: true,
  }),
  logFormat: option({
    key: 'log.format',
    flag: '--log-format',
    kind: choice(['auto', 'text', 'json']),
    default: 'auto',
    help: '`auto` writes text on a terminal and JSON lines elsewhere.',
  }),
  accessLog: option({
    key: 'log.access',
    kind: flag(),
    default: false,
    help: 'Whether every answered request is logged, with its path and its client.',
    reloadable: true,
  }),
  slowQueryMs: option({
    key: 'log.slow_query',
    kind: duration(0, hour),
    default: second,
    help: 'A query that takes longer is logged with its stages.',
    reloadable: true,
  }),
  slowQueryText: option({
    key: 'log.slow_query_text',
    kind: choice(['hash', 'text', 'none']),
    default: 'hash',
    help: 'What the line of a slow query shows of it: a hash, by which equal queries are known; the hash and the text, which may hold what nobody else should read; or nothing.',
    reloadable: true,
  }),
  defaultShardsPerTable: option({
    key: 'tables.default_shards',
    kind: integer(1, limits.shardsPerTableMax),
    default: 1,
    help: 'Key ranges of a table whose creation does not say.',
    aliases: ['default_shards_per_table'],
  }),
  bodyDeadlineMs: option({
    key: 'limits.body_deadline',
    kind: duration(100, limits.requestDeadlineMs - 1),
    default: limits.bodyDeadlineMs,
    help: 'How long a request body may take, besides one second for every 16 KiB that arrive.',
  }),
  requestDeadlineMs: option({
    key: 'limits.request_deadline',
    kind: duration(second, day),
    default: limits.requestDeadlineMs,
    help: 'How long a request may take in all.',
  }),
  queryDeadlineMs: option({
    key: 'limits.query_deadline',
    kind: duration(10, hour),
    default: limits.queryDeadlineMs,
    help: 'How long one query may search.',
  }),
  concurrentRequestsMax: option({
    key: 'limits.concurrent_requests',
    kind: integer(1, 65_535),
    default: limits.concurrentRequestsMax,
    help: 'Requests in flight; more are answered 503.',
  }),
  backlogBytesMax: option({
    key: 'limits.backlog',
    kind: size(mebibyte, 64 * 1024 * mebibyte),
    default: limits.backlogBytesMax,
    help: 'Bytes that may wait for an index before writes are answered 503 `backpressure`.',
  }),
  visibilityDelayMs: option({
    key: 'indexing.visibility_delay',
    kind: duration(1, 10 * second),
    default: limits.visibilityDelayMs,
    help: 'When a write that nobody waits for becomes searchable, at the latest.',
  }),
  checkpointIntervalMs: option({
    key: 'indexing.checkpoint_interval',
    kind: duration(second, hour),
    default: limits.checkpointIntervalMs,
    help: 'How often an index that changes is made durable, so that a restart has less to replay.',
  }),
  openRangesMax: option({
    key: 'storage.open_ranges',
    kind: integer(1, 65_536),
    default: limits.openRangesMax,
    help: 'Key ranges that are open at one time; fewer where the limit of descriptors (`ulimit -n`) asks for it.',
  }),
  rangeIdleMs: option({
    key: 'storage.range_idle',
    kind: duration(second, day),
    default: limits.rangeIdleMs,
    help: 'Time without use after which a key range is closed, but for the 64 that were used last.',
  }),
  scrubIntervalMs: option({
    key: 'storage.scrub_interval',
    kind: duration(0, 365 * day),
    default: limits.scrubIntervalMs,
    help: 'Time between two passes that read every stored document and check it against its checksum; 0s for none.',
  }),
  ttlSweepIntervalMs: option({
    key: 'ttl.sweep_interval',
    kind: duration(100, day),
    default: limits.ttlSweepIntervalMs,
    help: 'How often expired documents are deleted. They vanish from every read at once, whatever this says.',
  }),
  ttlGraceMs: option({
    key: 'ttl.grace',
    kind: duration(0, day),
    default: limits.ttlGraceMs,
    help: 'How long after its expiry a document is deleted.',
  }),
  modelsDir: option({
    key: 'inference.models_dir',
    flag: '--models-dir',
    kind: text('path'),
    default: './models',
    help: 'Directory of models, by kind: `embedders/NAME/`, `generators/NAME/`, ...',
  }),
  predictorsDir: option({
    key: 'inference.ml_dir',
    flag: '--ml-dir',
    kind: text('path'),
    default: './predictors',
    help: 'Directory of tabular predictors, `NAME/model.onnx`.',
  }),
  allowDownloads: option({
    key: 'inference.allow_downloads',
    flag: '--allow-downloads',
    kind: flag(),
    default: true,
    help: 'Whether models may be fetched from the network; with `false` nothing is.',
  }),
  inferenceConcurrency: option({
    key: 'admission.inference.max_concurrent_requests',
    kind: integer(0, 65_536),
    default: limits.inferenceConcurrency,
    help: 'Requests that may work with models at one time; the others get 503. 0 sets no bound.',
  }),
  loadedModelsMax: option({
    key: 'inference.max_loaded_models',
    kind: integer(1, 1_024),
    default: limits.loadedModelsMax,
    help: 'Models that are loaded at one time; the least recently used makes room.',
  }),
  modelMemoryBytes: optional({
    key: 'inference.memory_limit',
    kind: size(256 * mebibyte, 16 * 1024 * 1024 * mebibyte),
    help: 'Memory that all loaded models may take together; half of the memory of the machine unless given.',
  }),
  modelKeepAliveMs: option({
    key: 'inference.keep_alive',
    kind: duration(0, 30 * day),
    default: limits.modelKeepAliveMs,
    help: 'How long a model stays loaded after its last request; `0s` unloads it at once.',
  }),
  modelLoadMs: option({
    key: 'inference.load_timeout',
    kind: duration(second, hour),
    default: limits.modelLoadMs,
    help: 'How long a model may take to load.',
  }),
  modelStallMs: option({
    key: 'inference.stall_timeout',
    kind: duration(second, hour),
    default: limits.modelStallMs,
    help: 'How long the process of a model may make no progress with its work before it is ended.',
  }),
  preloadModels: option({
    key: 'inference.preload',
    kind: text(),
    default: 'none',
    help: 'Models to load at start, as `KIND/NAME` with commas between them, such as `generators/NAME`; `none` for none.',
  }),
  modelThreads: option({
    key: 'inference.threads',
    kind: integer(0, 1_024),
    default: 0,
    help: 'Threads of one model; 0 lets a short probe at its load choose.',
  }),
  contextTokensMax: option({
    key: 'inference.context_length',
    kind: integer(256, 1_048_576),
    default: limits.contextTokensMax,
    help: 'Most tokens that one generation may span, its prompt included; a model that knows fewer has fewer.',
  }),
  parallelSequences: option({
    key: 'inference.parallel_sequences',
    kind: integer(1, 256),
    default: limits.parallelSequences,
    help: 'Generations that run side by side in one model; further ones wait.',
  }),
  mediaHosts: option({
    key: 'inference.content_security.allowed_hosts',
    kind: text(),
    default: 'any',
    help: 'Hosts that requests may name for images and sounds, with commas between them; `.example.org` stands for all below it, `any` for every host.',
  }),
  blockPrivateMedia: option({
    key: 'inference.content_security.block_private_ips',
    kind: flag(),
    default: true,
    help: 'Whether images and sounds are fetched from public addresses only.',
  }),
  mediaBytesMax: option({
    key: 'inference.content_security.max_download_size',
    kind: size(0, 1024 * mebibyte),
    default: limits.mediaBytesMax,
    help: 'Bytes of all images and sounds of a request, as they were sent; 0 turns them off.',
    aliases: ['inference.content_security.max_download_size_bytes'],
  }),
  mediaDeadlineMs: option({
    key: 'inference.content_security.download_timeout',
    kind: duration(0, hour),
    default: limits.mediaDeadlineMs,
    help: 'How long one image or sound may take to fetch; `0s` for no deadline.',
  }),
  imageEdgeMax: option({
    key: 'inference.content_security.max_image_dimension',
    kind: integer(1, 65_535),
    default: limits.imageEdgeMax,
    help: 'Longer edge of an image, in pixels.',
  }),
  hubUrl: option({
    key: 'inference.hub_url',
    flag: '--hub-url',
    kind: webAddress('none'),
    default: 'https://huggingface.co',
    help: 'Address of the model hub, or of a mirror of it, that models are pulled from; `none` for no hub.',
  }),
  packageIndex: option({
    key: 'inference.package_index',
    flag: '--package-index',
    kind: webAddress('none'),
    default: 'https://pypi.org/simple',
    help: 'Address of the Python package index, or of a mirror of it, that models in packages are pulled from; `none` for no index.',
  }),
  failpoint: optional({
    key: 'testing.failpoint',
    kind: text(),
    help: 'Name of a place where the process kills itself, optionally with `:N` for the Nth time. For crash tests.',
  }),
} as const;

export type OptionName = keyof typeof options;

type ValueOf<O> = O extends Option<infer T> ? T : never;

/** Effective values. Durations are milliseconds, sizes bytes. */
export type Config = { readonly [Name in OptionName]: ValueOf<(typeof options)[Name]> };

/** `storage.data_dir` -> `SUNDEW__STORAGE__DATA_DIR` */
export function variableOf(key: string): string {
  return `SUNDEW__${key.toUpperCase().replaceAll('.', '__')}`;
}
