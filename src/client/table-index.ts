import { pause } from '../lib/clock.ts';
import type { IndexPreview, IndexPreviewRequest } from '../protocol/database/index-preview.ts';
import type { IndexConfig } from '../protocol/database/tables.ts';
import type { CallOptions, Requester } from './requester.ts';
import { SundewError } from './sundew-error.ts';

/** How far an index is. */
export interface IndexProgress {
  /** From 0 to 1. */
  readonly share: number;
  /** Documents that the build of the index has read. */
  readonly documents: number;
}

/** An index with its state, as the server tells it; members that are not named here are there as well. */
export interface IndexDetails {
  readonly config: IndexConfig;
  readonly status: {
    readonly readiness: {
      readonly state: string;
      readonly queryable: boolean;
      readonly complete: boolean;
      readonly pending_reasons: readonly string[];
    };
    readonly error: string;
    readonly doc_count: number;
    readonly backfill_progress: number;
    readonly backfill_items_processed: number;
    readonly [member: string]: unknown;
  };
}

interface ReadyOptions extends CallOptions {
  /** Called whenever the progress has changed. */
  readonly onProgress?: (progress: IndexProgress) => void;
}

const pollMs = 100;

/** One index of a table. */
export class TableIndex {
  readonly name: string;
  readonly #requester: Requester;
  readonly #path: string;

  constructor(requester: Requester, tablePath: string, name: string) {
    this.name = name;
    this.#requester = requester;
    this.#path = `${tablePath}/indexes/${encodeURIComponent(name)}`;
  }

  /** Creates it; documents that are there already are indexed in the background. */
  create(config: IndexConfig, options: CallOptions = {}): Promise<IndexConfig> {
    // Creating what is there with the same configuration changes nothing.
    return this.#requester.json({ ...options, method: 'POST', path: this.#path, body: config, repeat: 'always' });
  }

  /**
   * The texts that the index embeds of a few documents, or would embed with `config`, and the cost of all documents. Nothing is
   * stored; the embedder is asked, so it is not sent again where its answer is lost.
   */
  preview(request: IndexPreviewRequest = {}, options: CallOptions = {}): Promise<IndexPreview> {
    return this.#requester.json({
      ...options,
      method: 'POST',
      path: `${this.#path}/preview`,
      body: request,
      repeat: 'refused',
    });
  }

  get(options: CallOptions = {}): Promise<IndexDetails> {
    return this.#requester.json({ ...options, method: 'GET', path: this.#path, repeat: 'always' });
  }

  async drop(options: CallOptions = {}): Promise<void> {
    await this.#requester.json({ ...options, method: 'DELETE', path: this.#path, repeat: 'refused' });
  }

  /** Settles once the index shows every write before the call. Throws `SundewError` where its build has failed. */
  async ready({ onProgress, signal }: ReadyOptions = {}): Promise<void> {
    let told = '';
    for (;;) {
      const { status } = await this.get(signal === undefined ? {} : { signal });
      const { readiness, error } = status;
      const progress = { share: status.backfill_progress, documents: status.backfill_items_processed };
      if (JSON.stringify(progress) !== told) onProgress?.(progress);
      told = JSON.stringify(progress);
      if (readiness.complete) return;
      if (readiness.state === 'failed') throw failed(this.name, error);
      await pause(this.#requester.clock, pollMs, signal);
      signal?.throwIfAborted();
    }
  }
}

function failed(name: string, error: string): SundewError {
  const facts = { status: 200, retryable: false, retryAfterMs: undefined, requestId: undefined };
  return new SundewError('internal', `the index "${name}" could not be built: ${error}`, facts);
}
