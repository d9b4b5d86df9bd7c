import { type Backoff, backoffMs } from '../lib/backoff.ts';
import { pause } from '../lib/clock.ts';
import type { SyncLevel } from '../protocol/database/writes.ts';
import { requireDocuments } from './document-text.ts';
import type { JsonDocument } from './document-types.ts';
import type { Call, CallOptions, Requester } from './requester.ts';
import { SundewError } from './sundew-error.ts';
import type { Batch, Table } from './table.ts';

export interface TransactionOptions extends CallOptions {
  readonly sync_level?: SyncLevel;
  /** How often it is begun where other writes get in between; 10 unless given. */
  readonly attempts?: number;
}

/** A table as a transaction sees it: with what the transaction itself has staged. Nothing is written before the commit. */
export interface TransactionTable<Document> {
  /** The document, or `undefined` where there is none. The commit checks that the stored one has not changed since. */
  get(key: string): Promise<Document | undefined>;
  put(key: string, document: Document): Promise<void>;
  delete(key: string): Promise<void>;
  /** Inserts, deletes and transforms at once. */
  stage(batch: Omit<Batch<Document>, 'sync_level'>): Promise<void>;
}

/** A transaction under way. */
export interface Transaction {
  table<Document = JsonDocument>(table: string | Table<Document>): TransactionTable<Document>;
  /** The writes that `work` has staged are forgotten where it throws. Its reads are still checked. */
  savepoint<T>(work: () => Promise<T>): Promise<T>;
}

const attemptsUsual = 10;
/** A write that loses has lost against one that was committed, so the pause may be short. */
const backoff: Backoff = { firstMs: 5, maxMs: 500 };

/**
 * Runs `work` in a transaction and commits it; where it throws, nothing is written. It runs again from its beginning where a
 * document that it has read was changed meanwhile, so it should have no other effects. Throws `transaction_conflict` when that
 * has happened as often as `attempts` says.
 */
export async function runTransaction<T>(
  requester: Requester,
  work: (transaction: Transaction) => Promise<T>,
  { sync_level, attempts = attemptsUsual, signal }: TransactionOptions,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const open = await OpenTransaction.begin(requester, sync_level, signal);
    try {
      const result = await work(open);
      await open.commit();
      return result;
    } catch (error) {
      await open.abort();
      if (!isConflict(error) || attempt >= attempts) throw error;
    }
    await pause(requester.clock, backoffMs(attempt, backoff), signal);
    signal?.throwIfAborted();
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof SundewError && error.code === 'transaction_conflict';
}

class OpenTransaction implements Transaction {
  readonly #requester: Requester;
  readonly #path: string;
  readonly #signal: AbortSignal | undefined;

  constructor(requester: Requester, id: string, signal: AbortSignal | undefined) {
    this.#requester = requester;
    this.#path = `/db/v1/transactions/${id}`;
    this.#signal = signal;
  }

  /** One that is begun twice, because an answer was lost, ends by itself. */
  static async begin(
    requester: Requester,
    sync_level: SyncLevel | undefined,
    signal: AbortSignal | undefined,
  ): Promise<OpenTransaction> {
    const { transaction_id: id } = await requester.json<{ transaction_id: string }>({
      method: 'POST',
      path: '/db/v1/transactions/begin',
      body: sync_level === undefined ? {} : { sync_level },
      repeat: 'always',
      ...(signal && { signal }),
    });
    return new OpenTransaction(requester, id, signal);
  }

  table<Document = JsonDocument>(of: string | Table<Document>): TransactionTable<Document> {
    const table = typeof of === 'string' ? of : of.name;
    return {
      get: async (key) => {
        const { snapshot } = await this.#post<{ snapshot: { document: Document | null } }>('/read', { table, key });
        return snapshot.document ?? undefined;
      },
      put: async (key, document) => {
        requireDocuments({ [key]: document });
        await this.#post('/write', { table, key, document });
      },
      delete: (key) => this.#post('/delete', { table, key }),
      stage: async (batch) => {
        requireDocuments(batch.inserts);
        // A transform that is staged twice is applied twice.
        await this.#post('/stage', { tables: { [table]: batch } }, 'refused');
      },
    };
  }

  async savepoint<T>(work: () => Promise<T>): Promise<T> {
    const { savepoint_id: id } = await this.#post<{ savepoint_id: number }>('/savepoints');
    try {
      return await work();
    } catch (error) {
      // After a conflict there is nothing left to go back to.
      if (!isConflict(error)) await this.#post(`/savepoints/${id}/rollback`);
      throw error;
    }
  }

  commit(): Promise<void> {
    return this.#post('/commit');
  }

  /** It ends by itself where this does not reach the server. */
  async abort(): Promise<void> {
    await this.#requester
      .json({ method: 'POST', path: `${this.#path}/abort`, repeat: 'refused' })
      .catch(() => undefined);
  }

  #post<T>(step: string, body?: object, repeat: Call['repeat'] = 'always'): Promise<T> {
    const call = { method: 'POST', path: this.#path + step, repeat } as const;
    return this.#requester.json({ ...call, ...(body && { body }), ...(this.#signal && { signal: this.#signal }) });
  }
}
