import { childEnvironment, downloadEnvironment } from '../../config/child-environment.ts';
import type { LimitOptions } from '../../config/limits.ts';
import type { Config } from '../../config/options.ts';
import { Admission } from '../../inference/admission.ts';
import { openChunkCache } from '../../inference/chunking/chunk-cache.ts';
import { GenerationMetrics } from '../../inference/generation/generation-metrics.ts';
import type { Inference } from '../../inference/inference.ts';
import type { MediaFetcher } from '../../inference/media/fetch-media.ts';
import { MediaLoader } from '../../inference/media/media-loader.ts';
import { ChatTemplates } from '../../inference/templates/chat-templates.ts';
import type { Clock } from '../../lib/clock.ts';
import { openOnce } from '../../lib/concurrency/open-once.ts';
import { supervise } from '../../lib/concurrency/supervise.ts';
import { availableBackends, installedGpus } from '../../model-host/available-backends.ts';
import { ModelPool } from '../../model-host/model-pool.ts';
import { specOfModel } from '../../model-host/model-spec.ts';
import { modelCatalogue, pullEntryOf } from '../../models/download/model-catalogue.ts';
import { ModelDownloads } from '../../models/download/model-downloads.ts';
import { pullInChild } from '../../models/download/pull-in-child.ts';
import { ModelRegistry } from '../../models/model-registry.ts';
import type { Logger } from '../../observability/logger.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { Readiness } from '../../observability/readiness.ts';
import { isModelKind } from '../../protocol/models/model-kinds.ts';
import { entryFile } from '../../runtime/entry-file.ts';

interface InferenceDeps {
  readonly config: Config;
  readonly limits: LimitOptions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const hostEntry = entryFile(new URL('../../model-host/child/host-main.ts', import.meta.url));

/** Finds the models and makes ready to load them. Nothing is loaded yet. */
export function openInference({ config, limits, clock, logger, metrics }: InferenceDeps): Inference {
  const registry = openModels(config, logger);
  const gpus = installedGpus();
  const pool = new ModelPool({
    entry: hostEntry,
    environment: childEnvironment(),
    clock,
    options: { loadMs: config.modelLoadMs, stallMs: config.modelStallMs },
    pool: {
      loadedModelsMax: config.loadedModelsMax,
      memoryBytesMax: config.modelMemoryBytes ?? Math.floor(process.constrainedMemory() / 2),
      keepAliveMs: config.modelKeepAliveMs,
      checkEveryMs: limits.modelCheckMs,
      stuckMs: limits.modelStuckMs,
    },
    onLoading(key) {
      logger.info('loading a model', { model: key });
    },
    onLoad(key, durationMs, { device }) {
      metrics.observe('modelLoads', [kindOf(key)], durationMs / 1_000);
      logger.info('model loaded', { model: key, duration_ms: Math.round(durationMs), ...(device && { device }) });
      if (device !== 'cpu' || gpus.length === 0) return;
      logger.warn('a model is on the CPU though packages for GPUs are installed', {
        model: key,
        packages: gpus.join(),
      });
    },
    ...(gpus.length > 0 && {
      onGpuRefused: (key: string, error: unknown) =>
        logger.warn('a model could not be loaded; it is tried without GPUs', { model: key }, error),
    }),
    onUnload(key, reason) {
      metrics.increment('modelUnloads', [reason]);
      logger.info('model unloaded', { model: key, reason });
    },
    onCrash(key, reason) {
      metrics.increment('modelCrashes', [kindOf(key)]);
      logger.error('the process of a model ended; the next request gets a new one', { model: key, reason });
    },
  });
  const settings = {
    threads: config.modelThreads,
    contextTokensMax: config.contextTokensMax,
    parallelSequences: config.parallelSequences,
  };
  const admission = new Admission({
    clock,
    concurrentMax: config.inferenceConcurrency,
    onRefused: () => metrics.increment('inferenceRefused'),
    onFinished({ operation, items, tokens, durationMs }) {
      metrics.increment('inferenceItems', [operation], items);
      metrics.increment('inferenceTokens', [operation], tokens);
      metrics.observe('inferenceDuration', [operation], durationMs / 1_000);
    },
  });
  metrics.onCollect(() => collect(metrics, pool, admission));
  return {
    registry,
    models: openDownloads(registry, config, clock, logger),
    pool,
    admission,
    media: new MediaLoader({
      options: {
        downloadBytesMax: config.mediaBytesMax,
        concurrentMax: config.inferenceConcurrency,
        edgeMax: config.imageEdgeMax,
      },
      fetcher: openMediaFetcher(config, clock, metrics),
      pool,
      settings,
    }),
    templates: new ChatTemplates(),
    generations: new GenerationMetrics(metrics, clock, settings.parallelSequences),
    settings,
    backends: availableBackends(),
    allowDownloads: config.allowDownloads,
    chunkCache: openChunkCache(clock, { keptMs: limits.chunkCacheMs, chunksMax: limits.chunkCacheChunksMax }),
    clock,
  };
}

/** Fetches media from addresses that requests name, as the operator allows it. */
export function openMediaFetcher(config: Config, clock: Clock, metrics: Metrics): Pick<MediaFetcher, 'fetch'> {
  const hosts = config.mediaHosts === 'any' ? [] : config.mediaHosts.split(',');
  const allowedHosts = hosts.map((host) => host.trim().toLowerCase());
  return mediaFetcher({ allowedHosts, blockPrivateAddresses: config.blockPrivateMedia }, config, clock, metrics);
}

/** Fetches objects from the stores of the operator's own connections, wherever these are. */
export function openObjectFetcher(config: Config, clock: Clock, metrics: Metrics): Pick<MediaFetcher, 'fetch'> {
  return mediaFetcher({ allowedHosts: [], blockPrivateAddresses: false }, config, clock, metrics);
}

/** The modules for fetching are loaded when the first medium is asked for. */
function mediaFetcher(
  policy: { readonly allowedHosts: readonly string[]; readonly blockPrivateAddresses: boolean },
  { mediaDeadlineMs: deadlineMs }: Config,
  clock: Clock,
  metrics: Metrics,
): Pick<MediaFetcher, 'fetch'> {
  const open = openOnce(async () => {
    const [{ MediaFetcher }, { lookup }] = await Promise.all([
      import('../../inference/media/fetch-media.ts'),
      import('node:dns/promises'),
    ]);
    return new MediaFetcher({
      policy: { ...policy, deadlineMs },
      clock,
      resolve: (host) => lookup(host, { all: true }),
      onBlocked: (reason) => metrics.increment('mediaBlocked', [reason]),
    });
  });
  return { fetch: async (...media) => (await open()).fetch(...media) };
}

function openDownloads(registry: ModelRegistry, config: Config, clock: Clock, logger: Logger): ModelDownloads {
  const { modelsDir: modelsDirectory, hubUrl, packageIndex, allowDownloads, credentialVariables } = config;
  const environment = downloadEnvironment(credentialVariables);
  return new ModelDownloads({
    registry,
    catalogue: modelCatalogue,
    allowDownloads,
    clock,
    logger,
    pull: (entry, { signal, onEvent }) =>
      pullInChild(
        { entry: pullEntryOf(entry), modelsDirectory, hubUrl, packageIndex },
        { environment, clock, ...(signal && { signal }), ...(onEvent && { onEvent }) },
      ),
  });
}

/** Inference with what runs beside its requests. */
interface RunningInference {
  /** Ends every process and thread of models, and every download. */
  stop(): Promise<void>;
}

/** Makes a stuck model show in `/readyz`, and loads what is to be there from the start, fetching it where need be. */
export function startInference(inference: Inference, deps: InferenceDeps, readiness: Readiness): RunningInference {
  const { clock, logger } = deps;
  const stopping = new AbortController();
  const downloads = supervise(inference.models, {
    clock,
    signal: stopping.signal,
    onFailed: (service, error, attempt) =>
      logger.error('a background service failed and is started again', { service, attempt }, error),
  });
  readiness.add('inference', () => !inference.pool.stuck);
  const wanted = deps.config.preloadModels === 'none' ? [] : deps.config.preloadModels.split(',');
  for (const key of wanted.map((each) => each.trim())) {
    preload(inference, key).catch((error: unknown) => {
      logger.warn('a model could not be preloaded', { model: key }, error);
    });
  }
  return {
    async stop() {
      inference.templates.stop();
      stopping.abort();
      await downloads;
      await inference.pool.stop();
    },
  };
}

async function preload({ models, pool, settings }: Inference, key: string): Promise<void> {
  const [kind, ...name] = key.split('/');
  if (!isModelKind(kind)) throw new Error(`inference.preload names models as KIND/NAME, not "${key}"`);
  await pool.info(specOfModel(await models.obtain(kind, name.join('/')), settings));
}

function openModels({ modelsDir, predictorsDir }: Config, logger: Logger): ModelRegistry {
  const registry = new ModelRegistry(modelsDir, predictorsDir);
  for (const { kind, name, reason } of registry.refused)
    logger.warn('a model cannot be served', { kind, name, reason });
  const { models, predictors } = registry;
  if (models.length + predictors.length > 0) {
    logger.info('models found', { models: models.length, predictors: predictors.length });
  }
  return registry;
}

function collect(metrics: Metrics, pool: ModelPool, admission: Admission): void {
  metrics.set('inferencePermits', [], admission.taken);
  metrics.clear('modelsLoaded');
  metrics.clear('modelMemory');
  const kinds = Map.groupBy(pool.loaded(), ({ key }) => kindOf(key));
  for (const [kind, models] of kinds) {
    metrics.set('modelsLoaded', [kind], models.length);
    metrics.set(
      'modelMemory',
      [kind],
      models.reduce((sum, { residentBytes }) => sum + residentBytes, 0),
    );
  }
}

function kindOf(key: string): string {
  return key.split('/')[0] ?? key;
}
