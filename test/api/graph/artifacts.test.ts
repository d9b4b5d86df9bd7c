import { describe, expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { ModelService } from '../../support/providers/model-service.ts';
import { restore } from '../../support/restore-jobs.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

/** Graph indexes whose edges are made of what an extractor has found in a document. */

const hourMs = 3_600_000;
const facts = { name: 'facts', kind: 'asset', field: 'facts' };
const byFacts = { artifact: facts };

/** A document whose artifact says these relations: `type>target` or `type>target:score`. */
function saying(relations: readonly string[], more: object = {}): object {
  const texts = relations.map((relation) => relation.split(/[>:]/) as [string, string, string?]);
  const entities = [
    { label: 'work', text: 'this', score: 1 },
    ...texts.map(([, text]) => ({ label: 'place', text, score: 0.5 })),
  ];
  const found = texts.map(([type, , score], at) => ({
    type,
    source: { entity_index: 0 },
    target: { entity_index: at + 1 },
    ...(score === undefined ? {} : { score: Number(score) }),
  }));
  return { facts: JSON.stringify({ entities, relations: found }), ...more };
}

const insert = (table: GraphTable, inserts: object, more: object = {}) =>
  table.batch({ inserts, sync_level: 'full_index', ...more });

describe('edges of an artifact', () => {
  test.each([1, 3, 20])(
    'have the types, keys, weights and metadata that the index makes of its relations, over %i ranges',
    async (shards) => {
      await using server = await startTestServer();
      const graph = {
        artifact: facts,
        source: { kind: 'artifact', format: 'extraction_relation' },
        nodes: { model: 'document', target: 'place:{{target.text}}' },
        edge: {
          type: 'is_{{type}}',
          metadata: { label: '{{target.label}}', how: { sure: '{{score}}', by: 'm-1' }, none: '{{no.such}}' },
        },
        context: { doc_fields: ['year', '$.by.name', 'absent'] },
      };
      const table = await GraphTable.create(server, 't', { shards, graph });
      const more = { year: 1950, by: { name: 'ada' } };
      expect(await insert(table, { a: saying(['in>rome:0.25', 'near>ostia'], more), 'place:rome': {} })).toMatchObject({
        status: 201,
      });
      expect(await table.edges('a')).toMatchObject([
        {
          source: 'a',
          target: 'place:rome',
          type: 'is_in',
          weight: 0.25,
          metadata: { label: 'place', how: { sure: 0.25, by: 'm-1' }, year: 1950, 'by.name': 'ada' },
        },
        {
          target: 'place:ostia',
          type: 'is_near',
          weight: 1,
          metadata: { label: 'place', how: { by: 'm-1' }, year: 1950, 'by.name': 'ada' },
        },
      ]);
      expect(await table.arrows('place:rome', '&direction=in')).toEqual(['a>place:rome']);
      expect(await table.status()).toMatchObject({ edge_count: 2, node_count: 3, readiness: { state: 'ready' } });
    },
  );

  test('may be of its entities too, each type and target once with the greatest weight', async () => {
    await using server = await startTestServer();
    const source = { kind: 'artifact', format: 'extraction_graph', path: '$.found' };
    const table = await GraphTable.create(server, 't', { graph: { ...byFacts, source } });
    const entities = [
      { label: 'place', text: 'rome', score: 0.25 },
      { label: 'place', text: 'rome', score: 0.75 },
      { label: 'name', text: ' ' },
    ];
    const relations = [{ type: 'place', source: 'x', target: { text: 'rome' }, score: 0.5 }];
    await insert(table, { a: { facts: JSON.stringify({ found: { entities, relations } }) } });
    expect(await table.edges('a')).toMatchObject([{ target: 'rome', type: 'place', weight: 0.75 }]);
    await insert(table, { a: { facts: JSON.stringify({ other: 1 }) } });
    expect(await table.edges('a')).toEqual([]);
    expect(await table.status()).toMatchObject({ source_coverage: { failed: 0 }, readiness: { state: 'ready' } });
  });

  test.each([1, 3])(
    'follow their artifact through puts, transforms, merges and deletions, over %i ranges',
    async (shards) => {
      await using server = await startTestServer();
      const table = await GraphTable.create(server, 't', { shards, graph: byFacts });
      await insert(table, { a: saying(['to>m', 'to>z']), m: saying(['to>a']), z: {} });
      expect(await table.arrows('a')).toEqual(['a>m', 'a>z']);
      await insert(table, { a: saying(['to>z', 'on>m']) });
      expect(await table.arrows('a')).toEqual(['a>m', 'a>z']);
      expect((await table.edges('a')).map(({ type }) => type)).toEqual(['on', 'to']);
      const value = (saying(['to>b']) as { facts: string }).facts;
      const operations = [{ op: '$set', path: '$.facts', value }];
      await table.batch({ transforms: [{ key: 'a', operations }], sync_level: 'full_index' });
      expect(await table.arrows('a')).toEqual(['a>b']);
      const records = { a: saying(['to>c']), m: saying(['to>a']), z: {} };
      await server.send('POST', `${table.path}/merge`, { records, sync_level: 'full_index' });
      expect(await table.arrows('a', '&direction=both')).toEqual(['a>c', 'm>a']);
      // Without the field there is no artifact, and without one there are no edges.
      await insert(table, { a: { n: 1 } });
      expect(await table.arrows('a', '&direction=both')).toEqual(['m>a']);
      await table.batch({ deletes: ['m'], sync_level: 'full_index' });
      expect(await table.arrows('a', '&direction=both')).toEqual([]);
      expect(await table.status()).toMatchObject({ edge_count: 0 });
    },
  );

  test('are made of documents from before the index, and again by another configuration of the enrichment', async () => {
    await using server = await startTestServer();
    const path = '/db/v1/tables/t';
    await server.send('POST', path, { num_shards: 2 });
    const enrichment = { kind: 'asset', field: 'facts' };
    await server.send('PUT', `${path}/artifacts/facts/enrichment`, enrichment);
    const inserts = {
      a: saying(['to>b'], { other: (saying(['to>c']) as { facts: string }).facts }),
      z: saying(['to>a']),
    };
    await server.send('POST', `${path}/batch`, { inserts, sync_level: 'full_index' });
    const created = await server.send('POST', `${path}/indexes/g`, {
      type: 'graph',
      source: { kind: 'artifact', artifact: 'facts' },
    });
    expect(created).toMatchObject({
      status: 201,
      body: {
        source: { kind: 'artifact', artifact: 'facts', path: '$', format: 'extraction_relation' },
        nodes: { model: 'document', target: '{{target.text}}' },
        edge: { type: '{{type}}' },
      },
    });
    const table = new GraphTable(server, 't');
    expect(await table.arrows('a', '&direction=both')).toEqual(['a>b', 'z>a']);
    const inUse = { status: 409, body: { code: 'enrichment_in_use' } };
    expect(await server.send('DELETE', `${path}/artifacts/facts/enrichment`)).toMatchObject(inUse);
    const chunks = { kind: 'chunk', field: 'facts', chunk_size: 100 };
    expect(await server.send('PUT', `${path}/artifacts/facts/enrichment`, chunks)).toMatchObject(inUse);
    await server.send('PUT', `${path}/artifacts/facts/enrichment`, { ...enrichment, field: 'other' });
    await until(async () => `${await table.arrows('a', '&direction=both')}` === 'a>c');
    expect((await server.send('DELETE', `${path}/indexes/g`)).status).toBe(204);
    expect((await server.send('DELETE', `${path}/artifacts/facts/enrichment`)).status).toBe(200);
  });

  test('expire with their index from the millisecond on, and begin again with the next write of their document', async () => {
    const clock = new FakeClock();
    await using server = await startTestServer({ clock });
    const table = await GraphTable.create(server, 't', { shards: 2, graph: { ...byFacts, ttl_duration: '1h' } });
    await insert(table, { a: saying(['to>b', 'to>z']) });
    clock.jump(hourMs / 2);
    await insert(table, { a: saying(['to>b', 'to>c']) });
    clock.jump(hourMs / 2 - 1);
    expect(await table.arrows('a')).toEqual(['a>b', 'a>c']);
    clock.jump(1);
    expect(await table.arrows('a')).toEqual(['a>c']);
    await clock.advance(hourMs);
    expect(await table.status()).toMatchObject({ edge_count: 0 });
    await insert(table, { a: saying(['to>b', 'to>c']) });
    expect(await table.arrows('a')).toEqual(['a>b', 'a>c']);
  });
});

describe('a deleted target of an edge of an artifact', () => {
  test.each(['portable', 'native'])(
    'takes it along and back only with the next write of the document, over a sweep, a restart and a %s backup',
    async (format) => {
      using directory = new TemporaryDirectory();
      using place = new BackupPlace();
      const clock = new FakeClock();
      const start = () => place.server({ directory: directory.path, clock });
      const backup = { backup_id: 'b', location: place.location };
      {
        await using server = await start();
        const table = await GraphTable.create(server, 't', { shards: 3, graph: byFacts });
        await insert(table, { a: saying(['to>m']), z: saying(['to>m', 'to>a']), m: {} });
        await table.batch({ deletes: ['m'] });
        await insert(table, { m: {} });
        expect(await table.arrows('m', '&direction=in')).toEqual([]);
        // Swept: nothing says any more that `m` was deleted.
        await clock.advance(31_000);
      }
      await using server = await start();
      const table = new GraphTable(server, 't');
      expect(await table.arrows('m', '&direction=in')).toEqual([]);
      expect(await table.arrows('z')).toEqual(['z>a']);
      expect(await table.status()).toMatchObject({ edge_count: 1 });
      expect((await server.send('POST', '/db/v1/backup', { ...backup, format })).status).toBe(200);
      {
        await using other = await place.server();
        expect(await restore(other, backup)).toMatchObject({ phase: 'succeeded' });
        const restored = new GraphTable(other, 't');
        expect(await restored.arrows('m', '&direction=in')).toEqual([]);
        expect(await restored.arrows('z')).toEqual(['z>a']);
        await insert(restored, { z: saying(['to>m']) });
        expect(await restored.arrows('m', '&direction=in')).toEqual(['z>m']);
      }
      await insert(table, { a: saying(['to>m']) });
      expect(await table.arrows('m', '&direction=in')).toEqual(['a>m']);
    },
  );

  test('takes it along too where the artifact is made after the deletion', async () => {
    await using service = new ModelService('openai');
    const gate = Promise.withResolvers<void>();
    service.always = async ({ body }) => {
      await gate.promise;
      const content = (body.messages as { content: string }[]).at(-1)?.content ?? '';
      return Response.json({
        choices: [{ message: { content }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1 },
      });
    };
    await using server = await startTestServer();
    const config = { provider: 'openai', url: `${service.url}/v1`, api_key: 'k', model: 'chat' };
    const artifact = { ...facts, producer_json: { type: 'generator', config } };
    const table = await GraphTable.create(server, 't', { shards: 3, graph: { artifact } });
    await table.batch({ inserts: { a: saying(['to>m', 'to>z']), m: {} } });
    await until(async () => service.seen.length > 0);
    const waiting = { readiness: { state: 'queryable_partial', complete: false }, source_coverage: { total: 2 } };
    expect(await table.status()).toMatchObject(waiting);
    const asked = await server.send<{ partial?: string }>('GET', `${table.path}/indexes/g/edges?key=a`);
    expect(asked.body.partial).toBe('indexing');
    await table.batch({ deletes: ['m'] });
    gate.resolve();
    expect(await table.arrows('a')).toEqual(['a>z']);
    await table.batch({ inserts: { m: {} } });
    expect(await table.arrows('m', '&direction=in')).toEqual([]);
    await until(async () => (await table.status()).readiness.state === 'ready');
    expect(await table.status()).toMatchObject({ source_coverage: { total: 2, pending: 0, failed: 0 } });
  });
});

describe('an artifact that makes no edges', () => {
  const failing: [string, object, object, string][] = [
    ['is no JSON', {}, { facts: 'a>b' }, 'not JSON'],
    ['is no extraction', {}, { facts: '[1]' }, 'no extraction at "$"'],
    [
      'names an entity that is not there',
      {},
      { facts: '{"relations":[{"type":"t","source":"a","target":{"entity_index":3}}]}' },
      'none of its entities',
    ],
    ['leads to no key', {}, saying(['to>\u0007']), 'leads to no key'],
    [
      'has a weight out of bounds',
      { edge_types: [{ name: 'to', max_weight: 0.5 }] },
      saying(['to>b:0.75']),
      'the weight 0.75',
    ],
    ['has no weight', { edge: { weight: '{{target.label}}' } }, saying(['to>b']), 'must be a number'],
    [
      'leads to itself',
      { edge_types: [{ name: 'to', allow_self_loops: false }] },
      saying(['to>a']),
      'its own document',
    ],
    [
      'lacks metadata',
      { edge_types: [{ name: 'to', required_metadata: ['year'] }] },
      saying(['to>b']),
      'has no "year"',
    ],
    ['has too many', { max_edges_per_document: 1 }, saying(['to>b', 'to>c']), 'takes 1 of a document'],
  ];
  test.each(failing)('because it %s is counted, and its trace says why', async (_, graph, document, reason) => {
    await using server = await startTestServer();
    const table = await GraphTable.create(server, 't', { graph: { ...byFacts, ...graph } });
    const written = await insert(table, { a: document, z: saying([]) });
    // Committed, but not everything of it could be made.
    expect(written.status).toBe(202);
    expect(await table.edges('a')).toEqual([]);
    expect(await table.status()).toMatchObject({ source_coverage: { total: 2, failed: 1 } });
    const trace = await server.send('GET', `${table.path}/documents/a/artifacts`);
    expect(JSON.stringify(trace.body)).toContain(JSON.stringify(reason).slice(1, -1));
    await insert(table, { a: saying([]) });
    expect(await table.status()).toMatchObject({ source_coverage: { failed: 0 } });
  });

  test('because the index does not have its types is complete', async () => {
    await using server = await startTestServer();
    const table = await GraphTable.create(server, 't', { graph: { ...byFacts, edge_types: [{ name: 'to' }] } });
    await insert(table, { a: saying(['to>b', 'on>c']) });
    expect(await table.arrows('a')).toEqual(['a>b']);
    expect(await table.status()).toMatchObject({ readiness: { state: 'ready' }, source_coverage: { failed: 0 } });
  });
});

describe('a graph index over an artifact', () => {
  const artifactSource = { kind: 'artifact', artifact: 'facts' };
  const refused: [object, string][] = [
    [{ source: { kind: 'artifact' } }, '"source.artifact" is missing'],
    [{ source: { kind: 'table' } }, '"source.kind"'],
    [{ source: { kind: 'document_field', field: 'links' } }, '"source.field"'],
    [{ source: { ...artifactSource, format: 'triples' } }, '"source.format"'],
    [{ source: { ...artifactSource, pth: '$' } }, 'Did you mean "path"?'],
    [{ source: artifactSource, nodes: { model: 'external' } }, '"nodes.model"'],
    [{ source: artifactSource, nodes: { source: '{{key}}' } }, '"nodes.source"'],
    [{ source: artifactSource, nodes: { target: '{{#if}}' } }, 'line 1'],
    [{ source: artifactSource, edge: { type: 7 } }, '"edge.type"'],
    [{ source: artifactSource, edge: { weight: 1e99 } }, '"edge.weight"'],
    [{ source: artifactSource, context: { doc_fields: 'year' } }, '"context.doc_fields"'],
    [{ source: artifactSource, edge_types: [{ name: 'to', topology: 'tree' }] }, '"topology"'],
    [{ source: artifactSource, edge_types: [{ name: 'to', field: 'to' }] }, '"field"'],
    [{ nodes: { target: 'x' } }, '"nodes" goes with'],
    [{ edge: {} }, '"edge" goes with'],
    [{ context: { doc_fields: [] } }, '"context" goes with'],
    [{ artifact: facts, source: { kind: 'document_field' } }, '"artifact" goes with'],
    [{ artifact: facts, source: { kind: 'artifact', artifact: 'other' } }, '"artifact" declares "facts"'],
    [{ artifact: 'facts' }, '"artifact" must be'],
    [{ source: artifactSource, resolvers: {} }, '"resolvers"'],
    [{ source: artifactSource, summarizer: {} }, '"summarizer.provider"'],
    [{ source: { kind: 'artifact', artifact: 'pieces' } }, 'of kind "chunk"'],
  ];
  test('is refused by the name of what is wrong', async () => {
    await using server = await startTestServer();
    await server.send('POST', '/db/v1/tables/t', {});
    const chunks = { kind: 'chunk', field: 'facts', chunk_size: 100 };
    await server.send('PUT', '/db/v1/tables/t/artifacts/facts/enrichment', { kind: 'asset', field: 'facts' });
    await server.send('PUT', '/db/v1/tables/t/artifacts/pieces/enrichment', chunks);
    for (const [config, message] of refused) {
      const answer = await server.send<{ message: string }>('POST', '/db/v1/tables/t/indexes/g', {
        type: 'graph',
        ...config,
      });
      expect({ config, status: answer.status }).toEqual({ config, status: 400 });
      expect(answer.body.message).toContain(message);
    }
    const missing = { type: 'graph', source: { kind: 'artifact', artifact: 'nowhere' } };
    expect(await server.send('POST', '/db/v1/tables/t/indexes/g', missing)).toMatchObject({
      status: 404,
      body: { code: 'artifact_not_found' },
    });
    expect(await indexesOf(server)).toEqual(['full_text_index_v0']);
  });

  test('takes no edges of a write', async () => {
    await using server = await startTestServer();
    const table = await GraphTable.create(server, 't', { graph: byFacts });
    const answer = await insert(table, { a: { _edges: { g: { to: [{ target: 'b' }] } } } });
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_edge' } });
    expect(JSON.stringify(answer.body)).toContain('takes no edges of a write');
  });

  test('may be declared with its table, and its own enrichment goes with it', async () => {
    await using server = await startTestServer();
    const g = { type: 'graph', ...byFacts };
    expect((await server.send('POST', '/db/v1/tables/t', { indexes: { g } })).status).toBe(200);
    const table = new GraphTable(server, 't');
    await insert(table, { a: saying(['to>b']) });
    expect(await table.arrows('a')).toEqual(['a>b']);
    expect((await server.send('POST', `${table.path}/indexes/g`, g)).status).toBe(200);
    expect((await server.send('DELETE', `${table.path}/indexes/g`)).status).toBe(204);
    expect((await server.send('GET', `${table.path}/artifacts`)).body).toMatchObject({ artifacts: [] });
  });
});

async function indexesOf(server: TestServer): Promise<string[]> {
  const { body } = await server.send<{ config: { name: string } }[]>('GET', '/db/v1/tables/t/indexes');
  return body.map(({ config }) => config.name);
}
