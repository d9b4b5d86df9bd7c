import { expect, setDefaultTimeout, test } from 'bun:test';
import { SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

setDefaultTimeout(180_000);

const path = '/db/v1/tables/t';

test('edges of artifacts are whole after kills while they are made, and none leads to what was deleted meanwhile', async () => {
  using place = new FaultPlace();
  const documents = 300;
  const key = (at: number) => `k${at % documents}`;
  const factsOf = (at: number, version: number) =>
    JSON.stringify({
      relations: [1, 2, 3].map((step) => ({ type: `v${version}`, source: 'x', target: key(at + step * version) })),
    });
  const write = async (wire: WireClient, version: number) => {
    const inserts = Array.from({ length: documents }, (_, at) => [key(at), { facts: factsOf(at, version) }]);
    await wire.expect(201, 'POST', `${path}/batch`, { inserts: Object.fromEntries(inserts) });
  };
  {
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await wire.createTable('t', { num_shards: 3 });
    const artifact = { name: 'facts', kind: 'asset', field: 'facts' };
    await wire.expect(201, 'POST', `${path}/indexes/g`, { type: 'graph', artifact });
    await write(wire, 1);
    await server.kill();
  }
  {
    await using server = await place.start();
    await write(new WireClient(server.url), 2);
    await server.kill();
  }
  {
    await using server = await place.start();
    await new WireClient(server.url).expect(201, 'POST', `${path}/batch`, { deletes: [key(7)] });
    await server.kill();
  }
  await using server = await place.start();
  const wire = new WireClient(server.url);
  await until(async () => {
    const { body } = await wire.expect(200, 'GET', `${path}/indexes/g`);
    return (body as { status: { readiness: { complete: boolean } } }).status.readiness.complete;
  }, 120_000);
  const random = new SeededRandom(7);
  for (const at of [5, 1, 7, ...Array.from({ length: 40 }, () => random.between(0, documents - 1))]) {
    const { body } = await wire.expect(200, 'GET', `${path}/indexes/g/edges?key=${key(at)}`);
    const targets = at === 7 ? [] : [2, 4, 6].map((step) => key(at + step)).filter((target) => target !== key(7));
    const { edges, partial } = body as { edges: { target: string; type: string }[]; partial?: string };
    expect({ at, partial, edges: edges.map(({ type, target }) => `${type}>${target}`) }).toEqual({
      at,
      partial: undefined,
      edges: targets.sort().map((target) => `v2>${target}`),
    });
  }
  expect((await server.stop()).code).toBe(0);
  expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
});

interface Job {
  job_id: string;
  phase: string;
  progress: { step: string; written: number };
  result?: { iterations: number; nodes: { key: string; score: number }[] };
}

test('an algorithm that is killed while it computes or writes is computed again, and written whole', async () => {
  using place = new FaultPlace();
  const [nodes, links] = [800, 250];
  const body = { algorithm: 'pagerank', max_iterations: 1_000, tolerance: 0, write_field: 'rank', limit: 5 };
  let job: Job;
  {
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await wire.createTable('t', { num_shards: 3 });
    await wire.expect(201, 'POST', `${path}/indexes/g`, { type: 'graph' });
    const random = new SeededRandom(11);
    for (let from = 0; from < nodes; from += 100) {
      const inserts = Array.from({ length: 100 }, (_, at) => {
        const targets = Array.from({ length: links }, () => ({ target: `k${random.between(0, nodes - 1)}` }));
        return [`k${from + at}`, { _edges: { g: { to: targets } } }];
      });
      await wire.expect(201, 'POST', `${path}/batch`, { inserts: Object.fromEntries(inserts) });
    }
    await wire.expect(201, 'POST', `${path}/batch`, { inserts: { last: {} }, sync_level: 'full_index' });
    job = (await wire.expect(202, 'POST', `${path}/indexes/g/algorithms`, body)).body as unknown as Job;
    const at = `${path}/indexes/g/algorithms/${job.job_id}`;
    // A fast machine may be done with it before anybody has looked; the kill then comes while it writes, or behind it.
    await until(async () => {
      job = (await wire.expect(200, 'GET', at)).body as unknown as Job;
      return job.progress.step !== 'waiting';
    }, 120_000);
    await server.kill();
  }
  await using server = await place.start();
  const wire = new WireClient(server.url);
  await until(async () => {
    job = (await wire.expect(200, 'GET', `${path}/indexes/g/algorithms/${job.job_id}`)).body as unknown as Job;
    return job.phase === 'succeeded';
  }, 120_000);
  expect(job).toMatchObject({
    progress: { step: 'done', written: nodes },
    result: { iterations: 1_000 },
  });
  const stored = await wire.scan('t', { fields: ['rank'] });
  const ranks = [...stored].map(([, document]) => (document as { rank?: number }).rank);
  expect(ranks.filter((rank) => rank === undefined).length).toBe(1);
  const sum = ranks.reduce<number>((total, rank = 0) => total + rank, 0);
  expect(sum).toBeCloseTo(1, 6);
  expect((await server.stop()).code).toBe(0);
});
