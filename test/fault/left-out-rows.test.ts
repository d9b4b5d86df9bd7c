import { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync, rmSync } from 'node:fs';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';

setDefaultTimeout(180_000);

const path = '/db/v1/tables/t';
/** One of each kind that is built from parts; the default text index joins its documents with the chunks. */
const indexes = {
  dense: { type: 'embeddings', external: true, dimension: 2 },
  sparse: { type: 'embeddings', external: true, sparse: true },
  g: { type: 'graph' },
};
const pieces = { kind: 'chunk', field: 'text', chunk_size: 20, full_text_index: true };

const documentOf = (at: number) => ({
  text: `amber ${at}`,
  _embeddings: { dense: [at + 1, 1], sparse: { indices: [1], values: [at + 1] } },
  _edges: { g: { likes: [{ target: `k${(at + 1) % 5}` }] } },
});

interface Found {
  hits: { total: { value: number; relation: string } };
  partial?: boolean;
}

/** The answer of each index: how many it finds, and whether it says that it lacks something. */
async function answersOf(wire: WireClient): Promise<Record<string, unknown>> {
  const searches = {
    dense: { embeddings: { dense: [1, 1] } },
    sparse: { embeddings: { sparse: { indices: [1], values: [1] } } },
    text: { full_text_search: { match: 'amber', field: '_artifacts.pieces' } },
  };
  const found = Object.entries(searches).map(async ([name, search]) => {
    const { body } = await wire.expect(200, 'POST', '/db/v1/query', { table: 't', limit: 100, ...search });
    const [{ hits, partial }] = (body as unknown as { responses: [Found] }).responses;
    return [name, [hits.total.value, hits.total.relation, partial ?? false]] as const;
  });
  const { body } = await wire.expect(200, 'GET', `${path}/indexes/g/edges?key=k3`);
  const { edges, partial } = body as unknown as { edges: unknown[]; partial?: string };
  return { ...Object.fromEntries(await Promise.all(found)), g: [edges.length, partial ?? false] };
}

/** Reasons for which indexes are not complete, by name. */
async function reasonsOf(wire: WireClient): Promise<Record<string, string[]>> {
  const { body } = await wire.expect(200, 'GET', `${path}/indexes`);
  const all = body as unknown as { config: { name: string }; status: { readiness: { pending_reasons: string[] } } }[];
  return Object.fromEntries(all.map(({ config, status }) => [config.name, status.readiness.pending_reasons]));
}

const all = { dense: [5, 'exact', false], sparse: [5, 'exact', false], text: [5, 'exact', false], g: [1, false] };
const short = { dense: [4, 'gte', true], sparse: [4, 'gte', true], text: [4, 'gte', true], g: [0, 'damaged'] };

test('indexes that were built without damaged parts say so after a kill and after restarts, until the parts are written again', async () => {
  using place = new FaultPlace();
  const isNotedAll = () => {
    const checkpoints = place.files('checkpoint.json').filter((file) => file.endsWith('.json'));
    return checkpoints.length === 4 && checkpoints.every((file) => readFileSync(file, 'utf8').includes('left_out'));
  };
  {
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await wire.createTable('t', { indexes });
    await wire.expect(200, 'PUT', `${path}/artifacts/pieces/enrichment`, pieces);
    const inserts = Object.fromEntries([0, 1, 2, 3, 4].map((at) => [`k${at}`, documentOf(at)]));
    await wire.expect(201, 'POST', `${path}/batch`, { inserts, sync_level: 'full_index' });
    expect(await answersOf(wire)).toEqual(all);
    expect((await server.stop()).code).toBe(0);
  }
  {
    using database = new Database(place.file('documents.db'));
    const ordinal = "(SELECT ordinal FROM documents WHERE key = CAST('k3' AS BLOB))";
    const damaged = database.run(`UPDATE parts SET crc = crc + 1 WHERE id % 4294967296 = ${ordinal}`);
    expect(damaged.changes).toBe(4);
  }
  for (const file of place.files('/indexes/')) rmSync(file);
  {
    await using server = await place.start({ environment: { SUNDEW__INDEXING__CHECKPOINT_INTERVAL: '1s' } });
    const wire = new WireClient(server.url);
    await until(async () => (await reasonsOf(wire)).dense?.join() === 'damaged');
    await until(async () => JSON.stringify(await answersOf(wire)) === JSON.stringify(short));
    await until(async () => isNotedAll());
    await server.kill();
  }
  for (const start of ['after the kill', 'after a stop']) {
    await using server = await place.start();
    const wire = new WireClient(server.url);
    expect([start, await answersOf(wire)]).toEqual([start, short]);
    const reasons = Object.values(await reasonsOf(wire)).map((each) => each.join());
    expect([start, reasons]).toEqual([start, ['damaged', 'damaged', 'damaged', 'damaged']]);
    await wire.expect(201, 'POST', `${path}/batch`, { inserts: { k0: documentOf(0) }, sync_level: 'full_index' });
    expect([start, await answersOf(wire)]).toEqual([start, short]);
    expect((await server.stop()).code).toBe(0);
  }
  {
    await using server = await place.start();
    const wire = new WireClient(server.url);
    // The server makes its chunks again; what came with the document is nowhere else, and rows of others mend nothing.
    const transforms = [{ key: 'k3', operations: [{ op: '$set', path: 'n', value: 1 }] }];
    const others = { inserts: { k0: documentOf(0) }, transforms, sync_level: 'full_index' };
    await wire.expect(201, 'POST', `${path}/batch`, others);
    expect(await answersOf(wire)).toEqual({ ...short, text: all.text });
    const inserts = { k3: documentOf(3) };
    await wire.expect(201, 'POST', `${path}/batch`, { inserts, sync_level: 'full_index' });
    expect(await answersOf(wire)).toEqual(all);
    await server.kill();
  }
  for (const start of ['after the kill', 'after a stop']) {
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await until(async () => JSON.stringify(await answersOf(wire)) === JSON.stringify(all));
    expect([start, Object.values(await reasonsOf(wire))]).toEqual([start, [[], [], [], []]]);
    expect((await server.stop()).code).toBe(0);
  }
  expect(isNotedAll()).toBe(false);
});
