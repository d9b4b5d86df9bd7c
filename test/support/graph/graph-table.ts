import { expect } from 'bun:test';
import type { TestServer } from '../test-server.ts';

export interface ShownEdge {
  source: string;
  target: string;
  type: string;
  weight: number;
  metadata?: unknown;
  created_at: string;
}

interface Found {
  results: { key: string; depth: number; distance: number; path?: string[]; document?: unknown }[];
  total: number;
  partial?: string;
}

interface FoundPaths {
  paths: { nodes: string[]; total_weight: number; length: number; edges: ShownEdge[] }[];
  partial?: string;
}

/** A table with a graph index `g`, spoken to over HTTP. */
export class GraphTable {
  readonly #server: TestServer;
  readonly path: string;

  constructor(server: TestServer, name: string) {
    this.#server = server;
    this.path = `/db/v1/tables/${name}`;
  }

  /** Creates it. */
  static async create(
    server: TestServer,
    name: string,
    { shards = 1, graph = {}, schema }: { shards?: number; graph?: object; schema?: object } = {},
  ): Promise<GraphTable> {
    const table = new GraphTable(server, name);
    const made = await server.send('POST', table.path, { num_shards: shards, ...(schema ? { schema } : {}) });
    expect(made.status).toBe(200);
    const index = await server.send('POST', `${table.path}/indexes/g`, { type: 'graph', ...graph });
    expect(index.body).toMatchObject({ name: 'g', type: 'graph' });
    return table;
  }

  batch(body: object) {
    return this.#server.send('POST', `${this.path}/batch`, body);
  }

  /** Puts documents whose edges, all of the type `to`, lead to these keys. */
  async link(edges: Readonly<Record<string, readonly string[]>>): Promise<void> {
    const inserts = Object.entries(edges).map(([key, targets]) => {
      return [key, { _edges: { g: { to: targets.map((target) => ({ target })) } } }] as const;
    });
    expect(await this.batch({ inserts: Object.fromEntries(inserts) })).toMatchObject({ status: 201 });
  }

  async edges(key: string, query = ''): Promise<ShownEdge[]> {
    const answer = await this.#server.send<{ edges: ShownEdge[]; partial?: string }>(
      'GET',
      `${this.path}/indexes/g/edges?key=${encodeURIComponent(key)}${query}`,
    );
    expect(answer.status).toBe(200);
    expect(answer.body.partial).toBeUndefined();
    return answer.body.edges;
  }

  /** Edges of a node as `source>target`, in the order of the answer. */
  async arrows(key: string, query = ''): Promise<string[]> {
    return (await this.edges(key, query)).map(({ source, target }) => `${source}>${target}`);
  }

  async traverse(body: object, headers: Record<string, string> = {}): Promise<Found> {
    const answer = await this.#server.send<Found>('POST', `${this.path}/indexes/g/traverse`, body, headers);
    expect(answer).toMatchObject({ status: 200 });
    return answer.body;
  }

  /** Keys found, each with its depth. */
  async reached(body: object): Promise<[string, number][]> {
    return (await this.traverse(body)).results.map(({ key, depth }) => [key, depth]);
  }

  async paths(body: object): Promise<FoundPaths> {
    const answer = await this.#server.send<FoundPaths>('POST', `${this.path}/indexes/g/shortest-path`, body);
    expect(answer).toMatchObject({ status: 200 });
    return answer.body;
  }

  async status(): Promise<{ edge_count: number; node_count: number; readiness: { state: string } }> {
    const answer = await this.#server.send('GET', `${this.path}/indexes/g`);
    return answer.body.status as { edge_count: number; node_count: number; readiness: { state: string } };
  }
}
