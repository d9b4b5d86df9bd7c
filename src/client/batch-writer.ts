import type { SyncLevel } from '../protocol/database/writes.ts';
import { textOf } from './document-text.ts';
import type { CallOptions } from './requester.ts';

export interface WriterOptions extends CallOptions {
  /** Of every batch; `write` unless given. */
  readonly sync_level?: SyncLevel;
  /** Keys of a batch; 1,000 unless given. */
  readonly keysMax?: number;
  /** Characters of a batch as JSON; 1 Mi unless given. */
  readonly charsMax?: number;
}

/** Sends one batch; `body` is its JSON. */
type SendBatch = (body: string, options: CallOptions) => Promise<unknown>;

/** The document as JSON, or `undefined` for a deletion. */
type Operation = string | undefined;

/**
 * Collects puts and deletes into batches. One batch is on its way while the next one fills, so that writes of a key take
 * effect in their order; whoever writes faster waits. After a failure every call rejects with its error, and what was not
 * acknowledged may or may not have been written.
 */
export class BatchWriter<Document> implements AsyncDisposable {
  readonly #send: SendBatch;
  readonly #options: WriterOptions;
  readonly #keysMax: number;
  readonly #charsMax: number;
  #operations = new Map<string, Operation>();
  #chars = 0;
  #sending: Promise<void> = Promise.resolve();
  #isSending = false;
  #written = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(send: SendBatch, { keysMax = 1_000, charsMax = 1_048_576, ...options }: WriterOptions) {
    this.#send = send;
    this.#options = options;
    this.#keysMax = keysMax;
    this.#charsMax = charsMax;
  }

  /** Keys whose write was acknowledged. */
  get written(): number {
    return this.#written;
  }

  /** Settles once there is room for more. */
  async put(key: string, document: Document): Promise<void> {
    await this.#add(key, textOf(key, document));
  }

  delete(key: string): Promise<void> {
    return this.#add(key, undefined);
  }

  /** Settles once everything that was given is acknowledged. */
  async flush(): Promise<void> {
    while (this.#isSending || this.#operations.size > 0) {
      await this.#sending;
      this.#throwIfFailed();
      this.#begin();
    }
    this.#throwIfFailed();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.flush();
  }

  async #add(key: string, operation: Operation): Promise<void> {
    this.#throwIfFailed();
    this.#options.signal?.throwIfAborted();
    const before = this.#operations.has(key) ? charsOf(key, this.#operations.get(key)) : 0;
    this.#chars += charsOf(key, operation) - before;
    this.#operations.set(key, operation);
    while (this.#isFull()) {
      await this.#sending;
      this.#throwIfFailed();
      if (this.#isFull()) this.#begin();
    }
  }

  #isFull(): boolean {
    const hasRoom = this.#operations.size < this.#keysMax && this.#chars < this.#charsMax;
    return this.#operations.size > 0 && !hasRoom;
  }

  /** Sends what has been collected, unless a batch is on its way. */
  #begin(): void {
    if (this.#isSending || this.#operations.size === 0) return;
    const operations = this.#operations;
    this.#operations = new Map();
    this.#chars = 0;
    this.#isSending = true;
    this.#sending = this.#deliver(operations);
  }

  async #deliver(operations: ReadonlyMap<string, Operation>): Promise<void> {
    try {
      await this.#send(bodyOf(operations, this.#options.sync_level), this.#options);
      this.#written += operations.size;
    } catch (error) {
      this.#failure ??= { error };
    } finally {
      this.#isSending = false;
    }
  }

  #throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}

function charsOf(key: string, operation: Operation): number {
  return key.length + (operation?.length ?? 0);
}

/** Documents are written as they were given: as JSON already. */
function bodyOf(operations: ReadonlyMap<string, Operation>, syncLevel: SyncLevel | undefined): string {
  const inserts: string[] = [];
  const deletes: string[] = [];
  for (const [key, document] of operations) {
    if (document === undefined) deletes.push(key);
    else inserts.push(`${JSON.stringify(key)}:${document}`);
  }
  const level = syncLevel === undefined ? '' : `,"sync_level":${JSON.stringify(syncLevel)}`;
  return `{"inserts":{${inserts.join(',')}},"deletes":${JSON.stringify(deletes)}${level}}`;
}
