import type { Clock } from '../../lib/clock.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import { aborted, type Service } from '../../lib/concurrency/supervise.ts';
import type { Logger } from '../../observability/logger.ts';
import type { CatalogueEntry } from '../../protocol/models/catalogue-entry.ts';
import type { ModelKind } from '../../protocol/models/model-kinds.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { InstalledModel } from '../installed-model.ts';
import { isStillThere, type ModelRegistry } from '../model-registry.ts';
import { type ModelSource, requireInstalled } from '../require-model.ts';
import type { PullEvent, PullOptions } from './pull-model.ts';

export interface ModelDownloadsDeps {
  readonly registry: ModelRegistry;
  /** Asked for once somebody wants a model that is not installed. */
  readonly catalogue: () => readonly CatalogueEntry[];
  readonly allowDownloads: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly pull: (entry: CatalogueEntry, options: Pick<PullOptions, 'signal' | 'onEvent'>) => Promise<void>;
}

/** How long a model that could not be fetched is left alone, in milliseconds. */
const pauseAfterFailureMs = 60_000;
const retryMinMs = 1_000;
const retryMaxMs = 30_000;
const logEveryPercent = 10;

/** How far a download is, in bytes of all files of the model. */
export interface DownloadProgress {
  readonly received: number;
  readonly total: number;
}

export interface ObtainOptions {
  /** Aborted when nobody waits any more; the download goes on for others and for later. */
  readonly signal?: AbortSignal;
  /** Called where the model has to be fetched, each time that more has arrived. */
  readonly onProgress?: (progress: DownloadProgress) => void;
}

interface Download {
  readonly startedMs: number;
  readonly listeners: Set<(progress: DownloadProgress) => void>;
  /** How much is there, from 0 to 1. */
  share: number;
  /** Settles, and never fails, when it is over. */
  ended: Promise<void>;
}

interface Failure {
  readonly reason: string;
  readonly untilMs: number;
}

/**
 * The models that requests name. One that is installed later than the server started is found; one of the catalogue
 * that is not installed is fetched once, whoever asks meanwhile, where downloads are allowed.
 */
export class ModelDownloads implements ModelSource, Service {
  readonly name = 'model downloads';
  readonly #deps: ModelDownloadsDeps;
  #known: readonly CatalogueEntry[] | undefined;
  readonly #running = new Map<string, Download>();
  readonly #failed = new Map<string, Failure>();
  readonly #stopping = new AbortController();

  constructor(deps: ModelDownloadsDeps) {
    this.#deps = deps;
  }

  require(kind: ModelKind, name: string): InstalledModel {
    const { registry, allowDownloads } = this.#deps;
    const known = registry.find(kind, name);
    if (known !== undefined && isStillThere(known)) return known;
    registry.rescan();
    const isRefused = registry.refused.some((each) => each.kind === kind && each.name === name);
    const isThere = isRefused || registry.find(kind, name) !== undefined;
    const entry = this.#catalogue().find((each) => each.kind === kind && each.name === name);
    if (isThere || entry === undefined) return requireInstalled(registry, kind, name);
    if (!allowDownloads) return requireInstalled(registry, kind, name, `; sundew models pull ${name} fetches it`);
    throw this.#fetch(entry);
  }

  /** The same, but waits for a model that has to be fetched. Rejects with the reason of the signal once it is aborted. */
  async obtain(kind: ModelKind, name: string, { signal, onProgress }: ObtainOptions = {}): Promise<InstalledModel> {
    try {
      return this.require(kind, name);
    } catch (error) {
      const download = this.#running.get(name);
      if (download === undefined) throw error;
      if (onProgress !== undefined) download.listeners.add(onProgress);
      try {
        await abortable(download.ended, signal);
      } finally {
        if (onProgress !== undefined) download.listeners.delete(onProgress);
      }
      return this.require(kind, name);
    }
  }

  /** Ends with its signal: then running downloads are cancelled, and what has arrived is kept. None begins after that. */
  async run(signal: AbortSignal): Promise<void> {
    await aborted(signal);
    this.#stopping.abort();
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  #catalogue(): readonly CatalogueEntry[] {
    this.#known ??= this.#deps.catalogue();
    return this.#known;
  }

  #fetch(entry: CatalogueEntry): ServiceError {
    const { clock } = this.#deps;
    const failure = this.#failed.get(entry.name);
    const leftMs = failure === undefined ? 0 : failure.untilMs - clock.monotonicMs();
    if (failure !== undefined && leftMs > 0) {
      return new ServiceError('unavailable', `the model "${entry.name}" could not be downloaded: ${failure.reason}`, {
        retryAfterMs: Math.min(retryMaxMs, Math.ceil(leftMs)),
      });
    }
    const download = this.#running.get(entry.name) ?? this.#start(entry);
    return new ServiceError(
      'model_loading',
      `the model "${entry.name}" is downloading (${Math.floor(100 * download.share)}%)`,
      { retryAfterMs: remainingMs(download, clock.monotonicMs()) },
    );
  }

  #start(entry: CatalogueEntry): Download {
    const { clock } = this.#deps;
    const download: Download = {
      startedMs: clock.monotonicMs(),
      listeners: new Set(),
      share: 0,
      ended: Promise.resolve(),
    };
    this.#running.set(entry.name, download);
    download.ended = this.#pull(entry, download).finally(() => this.#running.delete(entry.name));
    return download;
  }

  async #pull(entry: CatalogueEntry, download: Download): Promise<void> {
    const { clock, logger, registry, pull } = this.#deps;
    const model = `${entry.kind}/${entry.name}`;
    logger.info('fetching a model', { model });
    try {
      await pull(entry, {
        signal: this.#stopping.signal,
        onEvent: (event) => this.#tell(model, download, event),
      });
      registry.rescan();
      this.#failed.delete(entry.name);
      logger.info('model fetched', { model, duration_ms: Math.round(clock.monotonicMs() - download.startedMs) });
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      this.#failed.set(entry.name, { reason, untilMs: clock.monotonicMs() + pauseAfterFailureMs });
      logger.error('a model could not be fetched', { model }, error);
    }
  }

  #tell(model: string, download: Download, event: PullEvent): void {
    const { logger } = this.#deps;
    if (event.type === 'refused')
      logger.warn('a source of a model failed', { model, from: event.from, reason: event.reason });
    if (event.type === 'unreachable')
      logger.warn('a source of models cannot be reached', { model, host: event.host, reason: event.reason });
    if (event.type !== 'progress') return;
    const step = (share: number) => Math.floor((100 * share) / logEveryPercent);
    const share = event.received / event.total;
    if (step(share) > step(download.share))
      logger.info('fetching a model', { model, percent: Math.floor(100 * share) });
    download.share = share;
    for (const listener of download.listeners) listener({ received: event.received, total: event.total });
  }
}

/** As fast as it went so far; clients give up on waits of more than a minute. */
function remainingMs({ startedMs, share }: Download, nowMs: number): number {
  const left = share > 0 ? (nowMs - startedMs) * (1 / share - 1) : retryMaxMs / 10;
  return Math.ceil(Math.min(retryMaxMs, Math.max(retryMinMs, left)));
}
