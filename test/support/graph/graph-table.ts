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

interface FoundNodes {
  results: { key: string; depth: number; distance: number; path?: string[]; document?: unknown }[];
  total: number;
}

interface FoundPaths {
  paths: { nodes: string[]; total_weight: number; length: number; edges: ShownEdge[] }[];
}

interface GraphStatus {
  edge_count: number;
  node_count: number;
  readiness: { state: string };
  algebraic_graph: { traversal: Record<string, number> };
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
    const url = `${this.path}/indexes/g/edges?key=${encodeURIComponent(key)}${query}`;
    return (await this.#whole<{ edges: ShownEdge[] }>('GET', url)).edges;
  }

  /** The answer, once the index shows every write; under load that may take longer than an answer waits. */
  async #whole<Body>(method: string, url: string, body?: object): Promise<Body & { partial?: string }> {
    for (;;) {
      const answer = await this.#server.send<Body & { partial?: string }>(method, url, body);
      expect(answer).toMatchObject({ status: 200 });
      if (answer.body.partial !== 'indexing') return answer.body;
      // Without a port nothing else gives the followers of the process their turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Edges of a node as `source>target`, in the order of the answer. */
  async arrows(key: string, query = ''): Promise<string[]> {
    return (await this.edges(key, query)).map(({ source, target }) => `${source}>${target}`);
  }

  traverse(body: object): Promise<FoundNodes> {
    return this.#whole<FoundNodes>('POST', `${this.path}/indexes/g/traverse`, body);
  }

  /** Keys found, each with its depth. */
  async reached(body: object): Promise<[string, number][]> {
    return (await this.traverse(body)).results.map(({ key, depth }) => [key, depth]);
  }

  paths(body: object): Promise<FoundPaths> {
    return this.#whole<FoundPaths>('POST', `${this.path}/indexes/g/shortest-path`, body);
  }

  async status(): Promise<GraphStatus> {
    const answer = await this.#server.send<{ status: GraphStatus }>('GET', `${this.path}/indexes/g`);
    return answer.body.status;
  }
}
