export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonDocument = { [name: string]: Json };

export interface Transform {
  key: string;
  operations: { op: string; path: string; value?: Json }[];
  upsert?: boolean;
}

export interface Batch {
  inserts?: Record<string, JsonDocument>;
  deletes?: string[];
  transforms?: Transform[];
  sync_level?: string;
}

export interface Answer {
  status: number;
  body: Json;
  headers: Headers;
}

export interface Hits {
  total: { value: number; relation: string };
  hits: { _id: string; _score: number; _source?: JsonDocument }[];
}

/** An answer that the caller did not count on. */
export class WireError extends Error {
  readonly answer: Answer;

  constructor(what: string, answer: Answer) {
    super(`${what}: ${answer.status} ${JSON.stringify(answer.body)}`);
    this.answer = answer;
  }
}

/** The database plane as a client sees it: one method per route that the tests use, no retries. */
export class WireClient {
  readonly base: string;

  constructor(base: string) {
    this.base = base;
  }

  async send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
    const raw = typeof body === 'string' || body instanceof Uint8Array || body === undefined;
    const response = await fetch(this.base + path, {
      method,
      body: raw ? (body as string | undefined) : JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    });
    const text = await response.text();
    return { status: response.status, body: parsed(text), headers: response.headers };
  }

  async expect(status: number, method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.send(method, path, body);
    if (answer.status !== status) throw new WireError(`${method} ${path}`, answer);
    return answer;
  }

  async createTable(table: string, body: JsonDocument = {}): Promise<JsonDocument> {
    const answer = await this.send('POST', `/db/v1/tables/${table}`, body);
    if (answer.status !== 200 && answer.status !== 201) throw new WireError(`create ${table}`, answer);
    return answer.body as JsonDocument;
  }

  batch(table: string, batch: Batch): Promise<Answer> {
    return this.send('POST', `/db/v1/tables/${table}/batch`, batch);
  }

  multiBatch(tables: Record<string, Batch>, syncLevel?: string): Promise<Answer> {
    return this.send('POST', '/db/v1/batch', { tables, ...(syncLevel ? { sync_level: syncLevel } : {}) });
  }

  commit(readSet: { table: string; key: string; version: string }[], tables: Record<string, Batch>): Promise<Answer> {
    return this.send('POST', '/db/v1/transactions/commit', { read_set: readSet, tables });
  }

  /** The document and its version; undefined when there is none. `fields` as in the interface. */
  async lookup(
    table: string,
    key: string,
    fields?: string,
  ): Promise<{ document: JsonDocument; version: string } | undefined> {
    const projection = fields === undefined ? '' : `?fields=${encodeURIComponent(fields)}`;
    const answer = await this.send('GET', `/db/v1/tables/${table}/lookup/${encodeURIComponent(key)}${projection}`);
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw new WireError(`lookup ${table} ${key}`, answer);
    return { document: answer.body as JsonDocument, version: answer.headers.get('x-service-version') ?? '' };
  }

  /** Every document of a table, by key, in the order of the answer; without the members that the server adds. */
  async scan(table: string, request: JsonDocument = {}): Promise<Map<string, JsonDocument>> {
    const response = await fetch(`${this.base}/db/v1/tables/${table}/lookup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ fields: ['*'], ...request }),
    });
    const text = await response.text();
    if (response.status !== 200) {
      throw new WireError(`scan ${table}`, { status: response.status, body: parsed(text), headers: response.headers });
    }
    const documents = new Map<string, JsonDocument>();
    for (const line of text.split('\n')) {
      if (line === '') continue;
      const { _id, key, ...document } = JSON.parse(line) as JsonDocument;
      documents.set(String(key), withoutServerMembers(document));
    }
    return documents;
  }

  async query(request: JsonDocument): Promise<Hits> {
    const answer = await this.expect(200, 'POST', '/db/v1/query', request);
    const [result] = (answer.body as { responses: JsonDocument[] }).responses;
    if (!result || !('hits' in result) || Number(result.status ?? 200) >= 400) throw new WireError('query', answer);
    return result.hits as unknown as Hits;
  }

  async count(table: string): Promise<number> {
    return (await this.query({ table, full_text_search: { match_all: {} }, count: true })).total.value;
  }

  /** Documents per table, summed over its ranges, as the topology reports them. */
  async reportedDocuments(): Promise<Map<string, number>> {
    const answer = await this.expect(200, 'GET', '/db/v1/cluster');
    const { ranges } = (answer.body as { data: { ranges: { table_name: string; doc_count: number }[] } }).data;
    const counts = new Map<string, number>();
    for (const range of ranges) counts.set(range.table_name, (counts.get(range.table_name) ?? 0) + range.doc_count);
    return counts;
  }
}

export function withoutServerMembers(document: JsonDocument): JsonDocument {
  const { _timestamp, ...rest } = document;
  return rest;
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
