import type { Static } from '@sinclair/typebox';
import { commandClock } from '../lib/clock.ts';
import type { sqlResponse } from '../protocol/database/sql.ts';
import type { CreateTableRequest, TableStatus } from '../protocol/database/tables.ts';
import type { multiBatchResponse, ReadSetItem, SyncLevel } from '../protocol/database/writes.ts';
import { requireDocuments } from './document-text.ts';
import type { DocumentOf, JsonDocument } from './document-types.ts';
import { InferenceClient } from './inference.ts';
import { type Call, type CallOptions, Requester, type RequesterOptions, type Transport } from './requester.ts';
import { type Batch, Table } from './table.ts';
import { runTransaction, type Transaction, type TransactionOptions } from './transaction.ts';

export type { BatchWriter } from './batch-writer.ts';
export type { DocumentOf, FieldPath, JsonDocument } from './document-types.ts';
export type { Hit, Query, QueryNode, QueryResult } from './query-types.ts';
export { SundewError } from './sundew-error.ts';
export type { Table } from './table.ts';
export type { Transaction, TransactionOptions, TransactionTable } from './transaction.ts';

export interface ConnectOptions {
  /** Sent as a bearer credential. */
  readonly apiKey?: string | undefined;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Attempts beside the first one; 2 unless given. */
  readonly retries?: number | undefined;
  /** Takes the place of `fetch`. */
  readonly fetch?: Transport | undefined;
}

/** Several tables, written together where what was read has not changed since. */
export interface Commit {
  /** Documents with the versions at which they were read. */
  readonly read_set: readonly ReadSetItem[];
  readonly tables: Readonly<Record<string, Omit<Batch<JsonDocument>, 'sync_level'>>>;
  readonly sync_level?: SyncLevel;
}

/** The types of a statement's parameters. */
export type SqlValue = string | number | boolean | null;

export type SqlResult = Static<typeof sqlResponse>;

export type CommitResult = Static<typeof multiBatchResponse>;

/**
 * A database, over HTTP or in this process: the same methods, errors, defaults and limits. Every method takes a `signal`.
 * An answer that is no success throws `SundewError`; an abort throws the signal's reason.
 */
export interface SundewClient {
  /** Models: chat, embeddings, reranking. */
  readonly inference: InferenceClient;
  /** A table whose documents have this shape; nothing is sent. */
  table<Document = JsonDocument>(name: string): Table<Document>;
  /** Creates a table. With a schema given `as const` its documents have that shape. */
  createTable<const Schema = undefined>(
    name: string,
    settings?: Omit<CreateTableRequest, 'schema'> & { readonly schema?: Schema },
    options?: CallOptions,
  ): Promise<Table<DocumentOf<Schema>>>;
  tables(options?: CallOptions): Promise<TableStatus[]>;
  /** Throws `transaction_conflict` where a document of the read set has changed. */
  commit(commit: Commit, options?: CallOptions): Promise<CommitResult>;
  /**
   * Runs `work` in a transaction and commits it; where it throws, nothing is written. It runs again where a document that it has
   * read was changed meanwhile, and throws `transaction_conflict` when that happens too often.
   */
  transaction<T>(work: (transaction: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Reads relational tables by one statement of SQL; `parameters` are for each `?` in order. */
  sql(statement: string, parameters?: readonly SqlValue[], options?: CallOptions): Promise<SqlResult>;
  /** Any other route; the path is that of `docs/openapi.json`. It is repeated only where the server has refused it. */
  request<T>(method: Call['method'], path: string, body?: unknown, options?: CallOptions): Promise<T>;
}

/** A client of the server at this address, such as `http://127.0.0.1:8080`. Nothing is sent before a method is called. */
export function connect(url: string, options: ConnectOptions = {}): SundewClient {
  const { apiKey, headers = {}, retries, fetch: transport = (request) => fetch(request) } = options;
  const credential: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  return clientOver({
    transport,
    url: url.replace(/\/+$/, ''),
    headers: { ...credential, ...headers },
    ...(retries === undefined ? {} : { retries }),
  });
}

type ClientOptions = Pick<RequesterOptions, 'transport' | 'url' | 'headers'> &
  Partial<Pick<RequesterOptions, 'retries' | 'clock' | 'freshKey'>>;

/** 128 random bits: browsers have no `crypto.randomUUID` for pages that came without TLS. */
function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The client over any transport. */
export function clientOver(parts: ClientOptions): SundewClient {
  const defaults = { retries: 2, clock: commandClock, freshKey };
  return new Client(new Requester({ ...defaults, ...parts }));
}

class Client implements SundewClient {
  readonly inference: InferenceClient;
  readonly #requester: Requester;

  constructor(requester: Requester) {
    this.#requester = requester;
    this.inference = new InferenceClient(requester);
  }

  table<Document = JsonDocument>(name: string): Table<Document> {
    return new Table<Document>(this.#requester, name);
  }

  async createTable<const Schema = undefined>(
    name: string,
    settings: Omit<CreateTableRequest, 'schema'> & { readonly schema?: Schema } = {},
    options: CallOptions = {},
  ): Promise<Table<DocumentOf<Schema>>> {
    const table = this.table<DocumentOf<Schema>>(name);
    await table.create(settings as CreateTableRequest, options);
    return table;
  }

  tables(options: CallOptions = {}): Promise<TableStatus[]> {
    return this.#requester.json({ ...options, method: 'GET', path: '/db/v1/tables', repeat: 'always' });
  }

  async commit(commit: Commit, options: CallOptions = {}): Promise<CommitResult> {
    for (const name in commit.tables) requireDocuments(commit.tables[name]?.inserts);
    const path = '/db/v1/transactions/commit';
    return await this.#requester.json({
      ...options,
      method: 'POST',
      path,
      body: commit,
      repeat: 'always',
      keyed: true,
    });
  }

  transaction<T>(work: (transaction: Transaction) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    return runTransaction(this.#requester, work, options);
  }

  sql(sql: string, parameters: readonly SqlValue[] = [], options: CallOptions = {}): Promise<SqlResult> {
    const body = { sql, parameters };
    return this.#requester.json({ ...options, method: 'POST', path: '/db/v1/sql', body, repeat: 'always' });
  }

  request<T>(method: Call['method'], path: string, body?: unknown, options: CallOptions = {}): Promise<T> {
    const repeat = method === 'GET' ? 'always' : 'refused';
    return this.#requester.json({ ...options, method, path, body, repeat });
  }
}
