import type { Clock } from '../../lib/clock.ts';

export interface DemoHit {
  key: string;
  words: string[];
  gloss: string;
  /** The first fragment of the gloss with its matches marked; empty when none were asked for. */
  fragment: string;
}

/** A value and how many of all matches have it. */
interface DemoBucket {
  key: string;
  count: number;
}

export interface DemoAnswer {
  hits: DemoHit[];
  total: number;
  /** `gte` when the server stopped counting there. */
  relation: string;
  /** Of each aggregation that was asked for. */
  buckets: Map<string, DemoBucket[]>;
  roundTripMs: number;
}

/** An answer of the server that ends the demo, told in one sentence. */
export class DemoError extends Error {
  override readonly name = 'DemoError';
}

/** How long to wait after a 503 that names no time, in milliseconds. */
const retryDelayMs = 100;
const attemptsMax = 100;

/** A path of a graph search, each node with the type of the edge that leads to it and whether it is followed backwards. */
export interface DemoPath {
  nodes: { key: string; words: string[]; type: string; isBackwards: boolean }[];
  roundTripMs: number;
}

/** The calls of the public interface that the demo makes, over plain fetch. */
export class DemoClient {
  readonly #base: string;
  readonly #clock: Clock;

  constructor(url: string, clock: Clock) {
    this.#base = url.replace(/\/+$/, '').replace(/\/db\/v1$/, '');
    this.#clock = clock;
  }

  /** Creates a table or an index; false when it is there already. */
  async create(path: string, definition: object): Promise<boolean> {
    const { status, body } = await this.#post(`/db/v1${path}`, JSON.stringify(definition));
    if (status === 409) return false;
    requireSuccess(status, body);
    return true;
  }

  /** Writes one batch; waits and sends it again while the server asks for a slower pace. */
  async writeBatch(table: string, body: string): Promise<void> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const answer = await this.#post(`/db/v1/tables/${table}/batch`, body);
      if (answer.status !== 503) return requireSuccess(answer.status, answer.body);
      const asked = member(answer.body, 'retry_after_ms');
      await Bun.sleep(typeof asked === 'number' ? asked : retryDelayMs);
    }
    throw new DemoError('the server stayed too busy to take the documents');
  }

  async query(table: string, request: object): Promise<DemoAnswer> {
    const start = this.#clock.monotonicMs();
    const { status, body } = await this.#post(`/db/v1/tables/${table}/query`, JSON.stringify(request));
    const roundTripMs = this.#clock.monotonicMs() - start;
    requireSuccess(status, body);
    const responses = member(body, 'responses');
    const result: unknown = Array.isArray(responses) ? responses[0] : undefined;
    const error = member(result, 'error');
    if (typeof error === 'string' && error !== '') throw new DemoError(`the server refused the query: ${error}`);
    const hits = member(result, 'hits');
    const found = member(hits, 'hits');
    const total = member(hits, 'total');
    return {
      hits: (Array.isArray(found) ? found : []).map(readHit),
      total: Number(member(total, 'value') ?? 0),
      relation: String(member(total, 'relation') ?? 'exact'),
      buckets: readBuckets(member(result, 'aggregations')),
      roundTripMs,
    };
  }

  /** The shortest path between two documents, with their words; undefined where none is found. */
  async shortestPath(table: string, graph: string, request: object): Promise<DemoPath | undefined> {
    const start = this.#clock.monotonicMs();
    const url = `/db/v1/tables/${table}/indexes/${graph}/shortest-path`;
    const { status, body } = await this.#post(url, JSON.stringify(request));
    const roundTripMs = this.#clock.monotonicMs() - start;
    requireSuccess(status, body);
    const path = firstOf(member(body, 'paths'));
    const [keys, edges] = [member(path, 'nodes'), member(path, 'edges')];
    if (!Array.isArray(keys) || !Array.isArray(edges)) return undefined;
    const nodes = keys.map(async (name, at) => {
      const key = String(name);
      const edge: unknown = edges[at - 1];
      const type = String(member(edge, 'type') ?? '');
      return { key, words: await this.#wordsOf(table, key), type, isBackwards: member(edge, 'source') === key };
    });
    return { nodes: await Promise.all(nodes), roundTripMs };
  }

  async #wordsOf(table: string, key: string): Promise<string[]> {
    const { status, body } = await this.#send('GET', `/db/v1/tables/${table}/lookup/${key}`);
    requireSuccess(status, body);
    const words = member(body, 'words');
    return Array.isArray(words) ? words.map(String) : [];
  }

  #post(path: string, body: string): Promise<{ status: number; body: unknown }> {
    return this.#send('POST', path, body);
  }

  async #send(method: string, path: string, body?: string): Promise<{ status: number; body: unknown }> {
    const sent = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body };
    const response = await fetch(`${this.#base}${path}`, { method, ...sent }).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new DemoError(`no answer from ${this.#base}: ${reason}`);
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : parse(text) };
  }
}

function readHit(hit: unknown): DemoHit {
  const source = member(hit, '_source');
  const words = member(source, 'words');
  return {
    key: String(member(hit, '_id') ?? ''),
    words: Array.isArray(words) ? words.map(String) : [],
    gloss: String(member(source, 'gloss') ?? ''),
    fragment: String(firstOf(member(member(hit, '_highlight'), 'gloss')) ?? ''),
  };
}

function readBuckets(aggregations: unknown): DemoAnswer['buckets'] {
  if (typeof aggregations !== 'object' || aggregations === null) return new Map();
  const read = (bucket: unknown) => ({
    key: String(member(bucket, 'key')),
    count: Number(member(bucket, 'doc_count')),
  });
  return new Map(
    Object.entries(aggregations).map(([name, found]) => {
      const buckets = member(found, 'buckets');
      return [name, Array.isArray(buckets) ? buckets.map(read) : []];
    }),
  );
}

function firstOf(values: unknown): unknown {
  return Array.isArray(values) ? values[0] : undefined;
}

function requireSuccess(status: number, body: unknown): void {
  if (status >= 200 && status < 300) return;
  throw new DemoError(`the server answered ${status}: ${String(member(body, 'message') ?? JSON.stringify(body))}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(0, 200);
  }
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
