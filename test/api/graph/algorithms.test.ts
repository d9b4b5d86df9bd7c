import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { GraphTable } from '../../support/graph/graph-table.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface Job {
  job_id: string;
  phase: string;
  progress: { step: string; iterations?: number; written: number };
  result?: {
    node_count: number;
    edge_count: number;
    nodes?: { key: string; score: number }[];
    components?: { key: string; nodes: number }[];
    component_count?: number;
    iterations?: number;
    has_converged?: boolean;
  };
  code?: string;
}

let server: TestServer;
let table: GraphTable;

beforeAll(async () => {
  server = await startTestServer();
  table = await GraphTable.create(server, 'pages', { shards: 3 });
  // Two components; `ghost` has no document.
  await table.link({ a: ['m', 'z'], m: ['z'], z: ['a'], p: ['q', 'ghost'], q: [] });
});
afterAll(() => server[Symbol.asyncDispose]());

async function run(body: object, of = table, on = server): Promise<Job> {
  const path = `${of.path}/indexes/g/algorithms`;
  const asked = await on.send<Job>('POST', path, body);
  expect(asked).toMatchObject({ status: 202, body: { phase: 'queued' } });
  let job = asked.body;
  await until(async () => {
    job = (await on.send<Job>('GET', `${path}/${job.job_id}`)).body;
    return job.phase !== 'queued' && job.phase !== 'running';
  });
  return job;
}

async function document(key: string): Promise<Record<string, unknown>> {
  return (await server.send('GET', `${table.path}/documents/${key}`)).body;
}

describe('an algorithm over a whole graph', () => {
  test('ranks nodes by what leads to them', async () => {
    const { phase, result, progress } = await run({ algorithm: 'pagerank', edge_types: ['to'] });
    const iterations = result?.iterations ?? 0;
    expect({ phase, progress }).toEqual({ phase: 'succeeded', progress: { step: 'done', iterations, written: 0 } });
    expect(result).toMatchObject({ node_count: 6, edge_count: 6, has_converged: true });
    expect(result?.nodes?.map(({ key }) => key)).toEqual(['z', 'a', 'm', 'ghost', 'q', 'p']);
    const sum = result?.nodes?.reduce((total, { score }) => total + score, 0) ?? 0;
    expect(sum).toBeCloseTo(1, 6);
    const short = await run({ algorithm: 'pagerank', max_iterations: 1, tolerance: 0, limit: 1 });
    expect(short.result).toMatchObject({ iterations: 1, has_converged: false, nodes: [{ key: 'z' }] });
    expect(await document('z')).toEqual({});
  });

  test('finds what is connected, and counts edges', async () => {
    expect((await run({ algorithm: 'connected_components' })).result).toEqual({
      node_count: 6,
      edge_count: 6,
      component_count: 2,
      components: [
        { key: 'a', nodes: 3 },
        { key: 'ghost', nodes: 3 },
      ],
    });
    const degrees = async (direction?: string) =>
      (await run({ algorithm: 'degree', direction, limit: 2 })).result?.nodes?.map(({ key, score }) => [key, score]);
    expect(await degrees()).toEqual([
      ['a', 3],
      ['z', 3],
    ]);
    expect(await degrees('out')).toEqual([
      ['a', 2],
      ['p', 2],
    ]);
  });

  test('is written into documents where that is asked for', async () => {
    const job = await run({ algorithm: 'connected_components', write_field: 'graph.component' });
    expect(job).toMatchObject({ phase: 'succeeded', progress: { step: 'done', written: 6 } });
    expect(await document('z')).toMatchObject({ graph: { component: 'a' } });
    expect(await document('q')).toMatchObject({ graph: { component: 'ghost' } });
    // A node without a document gets none.
    expect((await server.send('GET', `${table.path}/documents/ghost`)).status).toBe(404);
    await run({ algorithm: 'degree', write_field: '$.degree' });
    expect(await document('p')).toMatchObject({ degree: 2, graph: { component: 'ghost' } });
    expect(await table.arrows('p')).toEqual(['p>ghost', 'p>q']);
  });

  test('does not see documents that have expired, or edges', async () => {
    const clock = new FakeClock();
    await using own = await startTestServer({ clock });
    const short = await GraphTable.create(own, 't', { shards: 2, schema: { ttl: { duration: '1h' } } });
    await short.link({ a: ['m'], m: ['z'] });
    await clock.advance(1_800_000);
    await short.link({ z: ['a'] });
    clock.jump(1_800_000);
    const asked = await own.send<Job>('POST', `${short.path}/indexes/g/algorithms`, { algorithm: 'degree' });
    let job = asked.body;
    await until(async () => {
      job = (await own.send<Job>('GET', `${short.path}/indexes/g/algorithms/${job.job_id}`)).body;
      return job.phase === 'succeeded';
    });
    expect(job.result).toMatchObject({ node_count: 0, edge_count: 0 });
  });

  test('fails by name where its table goes, and is not told of elsewhere', async () => {
    const other = await GraphTable.create(server, 'others');
    const { job_id } = await run({ algorithm: 'degree' }, other);
    const elsewhere = await server.send('GET', `${table.path}/indexes/g/algorithms/${job_id}`);
    expect(elsewhere).toMatchObject({ status: 404, body: { code: 'job_not_found' } });
    expect(await server.send('DELETE', `${other.path}/indexes/g/algorithms/${job_id}`)).toMatchObject({
      status: 200,
      body: { phase: 'succeeded' },
    });
  });

  test('of a table is not told of by another one that is made under its name', async () => {
    const first = await GraphTable.create(server, 'again');
    await first.link({ a: ['b'] });
    const { job_id } = await run({ algorithm: 'degree' }, first);
    expect((await server.send('DELETE', first.path)).status).toBe(204);
    const second = await GraphTable.create(server, 'again');
    for (const method of ['GET', 'DELETE']) {
      const answer = await server.send(method, `${second.path}/indexes/g/algorithms/${job_id}`);
      expect(answer).toMatchObject({ status: 404, body: { code: 'job_not_found' } });
    }
  });

  test.each([
    [{}, '"algorithm" is missing'],
    [{ algorithm: 'betweenness' }, '"algorithm" must be one of'],
    [{ algorithm: 'degree', damping: 0.5 }, '"damping"'],
    [{ algorithm: 'pagerank', damping: 2 }, '"damping"'],
    [{ algorithm: 'pagerank', write_field: '_edges' }, '"write_field"'],
    [{ algorithm: 'pagerank', write_field: 'a[0]' }, '"write_field"'],
  ])('%j is refused', async (body, named) => {
    const answer = await server.send('POST', `${table.path}/indexes/g/algorithms`, body);
    expect(answer.status).toBe(400);
    expect(String(answer.body.message)).toContain(named);
  });
});
