import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Ajv2020, type AnySchema } from 'ajv/dist/2020.js';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

type Content = Record<string, { schema: AnySchema }>;
interface Interface {
  paths: Record<
    string,
    Record<string, { responses: Record<string, { content?: Content }>; requestBody?: { content: Content } }>
  >;
  components: { schemas: Record<string, { properties?: Record<string, unknown> }> };
}

const books = '/db/v1/tables/books';
let server: TestServer;
let described: Interface;

beforeAll(async () => {
  server = await startTestServer();
  described = (await server.send<Interface>('GET', '/openapi.json')).body;
  await server.send('POST', books, { indexes: { g: { type: 'graph' } } });
  await server.send('POST', `${books}/batch`, {
    inserts: { a: { n: 1, _edges: { g: { to: [{ target: 'b', metadata: { x: 1 } }] } } }, b: { n: 2 } },
    sync_level: 'full_index',
  });
});
afterAll(() => server[Symbol.asyncDispose]());

/** Asks, and checks the answer against what the server's own OpenAPI document says of its status and form. */
async function asDescribed(method: string, path: string, url: string, body: unknown, accept?: string) {
  const answer = await server.send(method, url, body, accept === undefined ? {} : { accept });
  const { responses } = described.paths[path]?.[method.toLowerCase()] ?? { responses: {} };
  const content = (responses[answer.status] ?? responses.default)?.content ?? {};
  const type = answer.headers.get('content-type')?.split(';')[0] ?? '';
  expect([answer.status, type, Object.keys(content)]).toEqual([answer.status, type, expect.arrayContaining([type])]);
  const texts = answer.body as unknown as string;
  const isLines = type === 'application/x-ndjson';
  const values: unknown[] = isLines
    ? texts
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    : [answer.body];
  // Strict about members here, so that none is answered that is not described.
  const schema = { ...(content[type]?.schema as object), components: described.components };
  const check = new Ajv2020({ strict: false, formats: { binary: true } }).compile(schema ?? {});
  for (const value of values) expect([value, check(value), check.errors]).toEqual([value, true, null]);
  return { status: answer.status, type, values };
}

describe('the OpenAPI document describes', () => {
  const query = (table: string) => ({ table, limit: 1 });

  test('every form of a scan and of several queries', async () => {
    const scan = ['POST', '/db/v1/tables/{table}/lookup', `${books}/lookup`, {}] as const;
    expect(await asDescribed(...scan)).toMatchObject({ type: 'application/x-ndjson', values: [{}, {}] });
    expect(await asDescribed(...scan, 'application/json')).toMatchObject({ values: [[{}, {}]] });
    const queries = ['POST', '/db/v1/query', '/db/v1/query', [query('books'), query('absent')]] as const;
    expect(await asDescribed(...queries)).toMatchObject({
      values: [{ responses: [{ status: 200 }, { status: 404 }] }],
    });
    const lines = await asDescribed(...queries, 'application/x-ndjson');
    expect(lines).toMatchObject({ values: [{ status: 200 }, { status: 404 }] });
  });

  test('requests of one query, of an array of them, and of lines', () => {
    const { content } = described.paths['/db/v1/query']?.post?.requestBody ?? {};
    const accepts = (type: string, body: unknown) => {
      const schema = { ...(content?.[type]?.schema as object), components: described.components };
      return new Ajv2020({ strict: false }).compile(schema)(body);
    };
    const one = { table: 'books', limit: 1 };
    const bodies = [one, [one, one], [{ table: 1 }]];
    expect(bodies.map((body) => accepts('application/json', body))).toEqual([true, true, false]);
    expect(accepts('application/x-ndjson', one)).toBe(true);
  });

  test('the results of graph searches', async () => {
    const start = { index_name: 'g', start_nodes: { keys: ['a'] } };
    const graph_searches = {
      near: {
        type: 'traverse',
        ...start,
        include_edges: true,
        include_documents: true,
        params: { include_paths: true },
      },
      way: { type: 'shortest_path', ...start, target_nodes: { keys: ['b'] } },
      shape: { type: 'pattern', ...start, pattern: [{ alias: 'x' }, { alias: 'y', edge: {} }] },
    };
    const asked = { table: 'books', graph_searches };
    const { values } = await asDescribed('POST', '/db/v1/query', '/db/v1/query', asked);
    const [{ graph_results }] = (values as [{ responses: [{ graph_results: Record<string, object> }] }])[0].responses;
    expect(graph_results).toMatchObject({ near: { total: 1 }, way: { total: 1 }, shape: { total: 1 } });
    const { schemas } = described.components;
    const shape = JSON.stringify(schemas.QueryResult?.properties?.graph_results);
    const name = /schemas\/(\w+)"/.exec(shape)?.[1] ?? '';
    const known = Object.keys(schemas[name]?.properties ?? {});
    for (const result of Object.values(graph_results)) {
      expect(known).toEqual(expect.arrayContaining(Object.keys(result)));
    }
  });

  /** The document with no members but those that it names, for shapes whose name begins so. */
  const strictly = (begin: string): Interface['components'] => ({
    schemas: Object.fromEntries(
      Object.entries(described.components.schemas).map(([name, schema]) => [
        name,
        name.startsWith(begin) && schema.properties ? { ...schema, additionalProperties: false } : schema,
      ]),
    ),
  });
  const isWhole = async (path: string, url: string, begin: string) => {
    const { body } = await server.send('GET', url);
    const schema = described.paths[path]?.get?.responses[200]?.content?.['application/json']?.schema as object;
    const check = new Ajv2020({ strict: false }).compile({ ...schema, components: strictly(begin) });
    expect([body, check(body), check.errors]).toEqual([body, true, null]);
  };

  test('every member of the state of an index, of each kind', async () => {
    const { schemas } = strictly('Index');
    expect(Object.values(schemas).filter((schema) => 'additionalProperties' in schema).length).toBeGreaterThan(8);
    const kinds = {
      dense: { type: 'embeddings', external: true, dimension: 2 },
      sparse: { type: 'embeddings', external: true, sparse: true },
      managed: { type: 'embeddings', field: 't', embedder: { provider: 'mock', model: 'm' } },
      words: { type: 'full_text' },
      counts: { type: 'algebraic', derive_from_schema: true },
      over: { type: 'full_text', artifact_name: 'copy', enrichments: [{ name: 'copy', kind: 'asset', field: 't' }] },
    };
    for (const [name, config] of Object.entries(kinds)) {
      const created = await server.send('POST', `${books}/indexes/${name}`, config);
      expect([name, created.status, created.body]).toEqual([name, 201, created.body]);
    }
    await isWhole('/db/v1/tables/{table}/indexes', `${books}/indexes`, 'Index');
    await isWhole('/db/v1/tables/{table}/indexes/{index}', `${books}/indexes/g`, 'Index');
    const artifacts = '/db/v1/tables/{table}/documents/{key}/artifacts';
    await isWhole(artifacts, `${books}/documents/a/artifacts`, 'DocumentArtifacts');
  });

  test('every member of the status and of the topology', async () => {
    await isWhole('/db/v1/status', '/db/v1/status', 'Cluster');
    await isWhole('/db/v1/cluster', '/db/v1/cluster', 'Cluster');
  });

  test('conflicts of a transaction, when it reads and when it commits', async () => {
    const begun = await server.send('POST', '/db/v1/transactions/begin', {});
    const id = String(begun.body.transaction_id);
    const at = (what: string) =>
      [`/db/v1/transactions/{transaction}/${what}`, `/db/v1/transactions/${id}/${what}`] as const;
    const stale = { table: 'books', key: 'b', version: '1' };
    const read = await asDescribed('POST', ...at('read'), stale);
    expect(read).toMatchObject({ status: 409, values: [{ status: 'conflict', transaction_id: id }] });
    await server.send('POST', at('stage')[1], { read_set: [stale], tables: { books: { deletes: ['b'] } } });
    const end = await asDescribed('POST', ...at('commit'), undefined);
    expect(end).toMatchObject({ status: 409, values: [{ status: 'aborted', transaction_id: id }] });
  });

  test('what is not built', async () => {
    const path = '/db/v1/eval';
    expect(await asDescribed('POST', path, path, {})).toMatchObject({
      status: 501,
      values: [{ code: 'not_implemented' }],
    });
  });
});

test('durations of a profile are whole milliseconds', async () => {
  const join = { right_table: 'books', on: { left_field: '_id', right_field: '_id' } };
  const asked = { table: 'books', full_text_search: { query: 'n:<3' }, profile: true, join };
  const { body } = await server.send<{ responses: [{ profile: { join: { duration_ms: number } } }] }>(
    'POST',
    '/db/v1/query',
    asked,
  );
  expect(body.responses[0].profile.join.duration_ms).toSatisfy(Number.isInteger);
});

test('the status says what indexes can be made of, and a range without an end has an empty end key', async () => {
  const { body } = await server.send('GET', '/db/v1/cluster');
  expect(body).toMatchObject({
    index_capabilities: { artifact_sources: true, artifact_sources_state: 'available' },
    data: { ranges: [{ start_key: '', end_key: '' }] },
  });
});
