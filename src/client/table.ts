import type { Static } from '@sinclair/typebox';
import type { CreateTableRequest, TableSchema, TableStatus } from '../protocol/database/tables.ts';
import type { batchResponse, MergeResponse, SyncLevel } from '../protocol/database/writes.ts';
import { versionHeader } from '../protocol/version-header.ts';
import { BatchWriter, type WriterOptions } from './batch-writer.ts';
import { requireDocuments } from './document-text.ts';
import { linesOf } from './line-stream.ts';
import type { Hit, Query, QueryResult, Scan, Without } from './query-types.ts';
import type { Call, CallOptions, Requester } from './requester.ts';
import { connectionFailed, requestRefused, SundewError } from './sundew-error.ts';
import { TableIndex } from './table-index.ts';

/** One operation of a transform; `docs/guide/writes.md` has those that there are. */
interface TransformOperation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/** Writes that take effect together. */
export interface Batch<Document> {
  readonly inserts?: Readonly<Record<string, Document>>;
  readonly deletes?: readonly string[];
  readonly transforms?: readonly {
    readonly key: string;
    readonly operations: readonly TransformOperation[];
    readonly upsert?: boolean;
  }[];
  readonly sync_level?: SyncLevel;
}

export type BatchResult = Static<typeof batchResponse>;

/** A document with the version that an optimistic commit names. */
export interface Versioned<Document> {
  readonly document: Document;
  readonly version: string;
}

export interface Scanned<Document> {
  readonly key: string;
  readonly document: Partial<Document>;
}

interface WriteOptions extends CallOptions {
  readonly sync_level?: SyncLevel;
}

/** Hits of a page of `hits`. */
const pageHits = 100;

/** One table; nothing is sent before a method is called. */
export class Table<Document = Record<string, unknown>> {
  readonly name: string;
  readonly #requester: Requester;
  readonly #path: string;

  constructor(requester: Requester, name: string) {
    this.name = name;
    this.#requester = requester;
    this.#path = `/db/v1/tables/${encodeURIComponent(name)}`;
  }

  /** Creates the table. Throws `already_exists` where there is one of this name. */
  create(settings: CreateTableRequest, options: CallOptions = {}): Promise<TableStatus> {
    return this.#json({ ...options, method: 'POST', path: '', body: settings, repeat: 'refused' });
  }

  status(options: CallOptions = {}): Promise<TableStatus> {
    return this.#json({ ...options, method: 'GET', path: '', repeat: 'always' });
  }

  async drop(options: CallOptions = {}): Promise<void> {
    await this.#json({ ...options, method: 'DELETE', path: '', repeat: 'refused' });
  }

  /** Replaces the schema. */
  setSchema(schema: TableSchema, options: CallOptions = {}): Promise<TableStatus> {
    return this.#json({ ...options, method: 'PUT', path: '/schema', body: schema, repeat: 'always' });
  }

  /** The document, or `undefined` where there is none. */
  async get(key: string, options: CallOptions = {}): Promise<Document | undefined> {
    return (await this.getVersioned(key, options))?.document;
  }

  async getVersioned(key: string, options: CallOptions = {}): Promise<Versioned<Document> | undefined> {
    try {
      const path = `${this.#path}/documents/${segmentOf(key)}`;
      return await this.#requester.answer({ ...options, method: 'GET', path, repeat: 'always' }, async (response) => {
        const version = response.headers.get(versionHeader) ?? '';
        return { document: (await response.json()) as Document, version };
      });
    } catch (error) {
      if (error instanceof SundewError && error.code === 'key_not_found') return undefined;
      throw error;
    }
  }

  async put(key: string, document: Document, { sync_level, ...options }: WriteOptions = {}): Promise<void> {
    await this.batch({ inserts: { [key]: document }, ...(sync_level && { sync_level }) }, options);
  }

  async delete(key: string, { sync_level, ...options }: WriteOptions = {}): Promise<void> {
    await this.batch({ deletes: [key], ...(sync_level && { sync_level }) }, options);
  }

  /** All of the writes or none. It is sent again under one `Idempotency-Key` where its answer is lost. */
  async batch(batch: Batch<Document>, options: CallOptions = {}): Promise<BatchResult> {
    requireDocuments(batch.inserts);
    return await this.#batch(batch, options);
  }

  /** Collects writes into batches, with backpressure. */
  writer(options: WriterOptions = {}): BatchWriter<Document> {
    return new BatchWriter((body, call) => this.#batch(body, call.signal === undefined ? {} : call), options);
  }

  /** Makes a range of keys equal to a page of an outside source; `docs/guide/writes.md` has the protocol. */
  async merge(
    page: {
      readonly records: Readonly<Record<string, Document>>;
      readonly last_merged_id?: string;
      readonly dry_run?: boolean;
    },
    options: CallOptions = {},
  ): Promise<MergeResponse> {
    requireDocuments(page.records);
    return await this.#json({ ...options, method: 'POST', path: '/merge', body: page, repeat: 'always', keyed: true });
  }

  async query(query: Query<Document>, options: CallOptions = {}): Promise<QueryResult<Document>> {
    const call = { ...options, method: 'POST', path: '/query', body: query, repeat: 'always' } as const;
    const { responses } = await this.#json<{ responses: [QueryResult<Document>] }>(call);
    return responses[0];
  }

  /**
   * All hits, page by page, in the order of the query, or of the keys where it has none. Throws where an answer lacks
   * some: `unavailable` for a partial one, `data_corrupted` for damaged documents. `query` answers what there is.
   */
  async *hits(
    query: Without<Query<Document>, 'offset' | 'search_after' | 'search_before'>,
    options: CallOptions = {},
  ): AsyncGenerator<Hit<Document>> {
    const { limit = Number.POSITIVE_INFINITY, order_by = [{ field: '_id' }] } = query;
    let after: unknown[] | undefined;
    for (let left = limit; left > 0; ) {
      const size = Math.min(pageHits, left);
      const page = { ...query, order_by, limit: size, ...(after && { search_after: after }) } as Query<Document>;
      const result = await this.query(page, options);
      requireWhole(result);
      const { hits } = result;
      yield* hits.hits;
      left -= hits.hits.length;
      after = hits.hits.at(-1)?._sort;
      if (hits.hits.length < size || after === undefined) return;
    }
  }

  /**
   * Documents in the order of their keys. A connection that breaks is taken up behind the last key that has arrived, so
   * each comes once. Not a snapshot. Throws `data_corrupted` at a document that is damaged; go on `from` its key.
   */
  async *scan(scan: Scan<Document> = {}, options: CallOptions = {}): AsyncGenerator<Scanned<Document>> {
    let rest = scan;
    for (;;) {
      let last: string | undefined;
      let count = 0;
      try {
        for await (const each of this.#scanned(rest, options)) {
          last = each.key;
          count += 1;
          yield each;
        }
        return;
      } catch (error) {
        const isCut = error instanceof SundewError && error.code === 'connection_failed';
        if (!isCut || last === undefined) throw error;
        const { limit } = rest;
        if (limit !== undefined && limit <= count) return;
        rest = { ...rest, from: last, inclusive_from: false, ...(limit !== undefined && { limit: limit - count }) };
      }
    }
  }

  index(name: string): TableIndex {
    return new TableIndex(this.#requester, this.#path, name);
  }

  async *#scanned(scan: Scan<Document>, options: CallOptions): AsyncGenerator<Scanned<Document>> {
    const call = {
      ...options,
      method: 'POST',
      path: `${this.#path}/documents`,
      // Without `fields` the route names keys alone.
      body: { fields: ['*'], ...scan, single_key: true },
      repeat: 'always',
    } as const;
    const response = await this.#requester.send(call);
    for await (const line of linesOf(response, options.signal)) {
      if (line === '') continue;
      const read = lineOf(line);
      if (isDamage(read)) throw damaged(read._error.message);
      const { _id: key, ...document } = read;
      yield { key, document: document as Partial<Document> };
    }
  }

  #batch(body: Batch<Document> | string, options: CallOptions): Promise<BatchResult> {
    return this.#json({ ...options, method: 'POST', path: '/batch', body, repeat: 'always', keyed: true });
  }

  #json<T>(call: Call): Promise<T> {
    return this.#requester.json({ ...call, path: this.#path + call.path });
  }
}

function damaged(message: string): SundewError {
  return lacking('data_corrupted', message, false);
}

/** The error of an answer that came, and lacks something. */
function lacking(code: SundewError['code'], message: string, retryable: boolean): SundewError {
  return new SundewError(code, message, { status: 200, retryable, retryAfterMs: undefined, requestId: undefined });
}

function requireWhole({ partial, damaged: count = 0 }: QueryResult<unknown>): void {
  if (count > 0) throw damaged(`${count} documents among the hits are damaged; query() answers the others`);
  if (partial === true) throw lacking('unavailable', 'the answer is partial; query() answers what there is', true);
}

/** A line of a scan; half of one means that the rest was cut off. */
function lineOf(line: string): { _id: string } {
  try {
    return JSON.parse(line) as { _id: string };
  } catch (error) {
    throw connectionFailed(error);
  }
}

interface DamageLine {
  readonly _error: { readonly code: string; readonly message: string };
}

/** Whether it stands in place of a document: a document may have a field `_error` of its own. */
function isDamage(line: object): line is DamageLine {
  const { _id, key, _error, ...others } = line as { _id?: string; key?: string; _error?: { code?: unknown } | null };
  return _error?.code === 'data_corrupted' && key === _id && Object.keys(others).length === 0;
}

function segmentOf(key: string): string {
  if (key === '.' || key === '..') {
    throw requestRefused('invalid_key', `the key "${key}" cannot be part of an address; read it by a scan`);
  }
  if (key === '') throw requestRefused('invalid_key', 'the key is empty');
  try {
    return encodeURIComponent(key);
  } catch {
    throw requestRefused('invalid_key', 'the key has half of a character (a lone surrogate)');
  }
}
