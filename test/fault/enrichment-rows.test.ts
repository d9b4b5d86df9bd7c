import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { ModelService } from '../support/providers/model-service.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

setDefaultTimeout(180_000);

/** `ENRICHED_DOCUMENTS=20000` for the figure. */
const documents = Number(process.env.ENRICHED_DOCUMENTS ?? 4_000);
const kills = 4;
/** Texts of one request; `enrichmentBatchItems` of the limits. */
const batchItems = 64;

interface Details {
  status: {
    readiness: { state: string; complete: boolean; pending_reasons: string[] };
    source_coverage: { retrying: number; failed: number };
    doc_count: number;
    error: string;
  };
}

interface Answered {
  responses: { hits: { total: { value: number; relation: string } } }[];
}

const embedder = ({ url }: ModelService) => ({ provider: 'openai', model: 'words', dimensions: 8, url: `${url}/v1` });
const managed = (service: ModelService) => ({ type: 'embeddings', field: 'text', embedder: embedder(service) });

async function statusOf(url: string): Promise<Details['status']> {
  const response = await fetch(`${url}/db/v1/tables/notes/indexes/words`);
  return ((await response.json()) as Details).status;
}

async function insert(wire: WireClient, count: number, prefix = 'old'): Promise<void> {
  for (let from = 0; from < count; from += 1_000) {
    const keys = Array.from({ length: Math.min(1_000, count - from) }, (_, n) => `${prefix}${from + n}`);
    const inserts = Object.fromEntries(keys.map((key) => [key, { text: `${key} common` }]));
    await wire.expect(201, 'POST', '/db/v1/tables/notes/batch', { inserts });
  }
}

describe('a backfill of vectors', () => {
  test('that is killed again and again ends with one vector for each document, and embeds little twice', async () => {
    await using service = new ModelService('openai');
    using place = new FaultPlace();
    {
      await using server = await place.start();
      const wire = new WireClient(server.url);
      await wire.createTable('notes', { num_shards: 1 });
      await insert(wire, documents);
      await wire.expect(201, 'POST', '/db/v1/tables/notes/indexes/words', managed(service));
      await until(async () => service.seen.length > 3, 60_000);
      await server.kill();
    }
    for (let kill = 2; kill <= kills; kill += 1) {
      const before = service.seen.length;
      await using server = await place.start();
      // A busy machine may look late, and find the backfill done: the kill then comes behind it.
      const isDone = async () => (await statusOf(server.url)).readiness.state === 'ready';
      await until(async () => service.seen.length > before + 3 || (await isDone()), 60_000);
      await server.kill();
    }
    await using server = await place.start();
    const isDone = async () => (await statusOf(server.url)).readiness.state === 'ready';
    await until(isDone, 120_000);
    expect(await statusOf(server.url)).toMatchObject({ doc_count: documents, source_coverage: { failed: 0 } });
    const stored = await new WireClient(server.url).scan('notes', { fields: ['_embeddings'] });
    const vectors = [...stored.values()].map(
      (document) => (document as { _embeddings?: { words?: number[] } })._embeddings,
    );
    expect(vectors.filter((each) => each?.words?.length === 8)).toHaveLength(documents);
    const probes = 1;
    expect(service.texts.length).toBeGreaterThanOrEqual(documents + probes);
    expect(service.texts.length).toBeLessThanOrEqual(documents + probes + kills * batchItems);
    expect((await server.stop()).code).toBe(0);
    expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
  });
});

describe('an embedder that is down', () => {
  test('keeps the index waiting and the documents without a note; what comes later is made, too', async () => {
    await using service = new ModelService('openai');
    using place = new FaultPlace();
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await wire.createTable('notes', { indexes: { words: managed(service) } });
    service.always = () => new Response('overloaded', { status: 503 });
    await insert(wire, 100);
    await until(async () => (await statusOf(server.url)).readiness.pending_reasons.includes('embedder_unavailable'));
    const waiting = await statusOf(server.url);
    expect(waiting).toMatchObject({ readiness: { complete: false }, source_coverage: { retrying: 0, failed: 0 } });
    expect(waiting.error).not.toBe('');
    const query = { table: 'notes', indexes: ['words'], embeddings: { words: [1, 0, 0, 0, 0, 0, 0, 0] } };
    const answer = (await wire.expect(200, 'POST', '/db/v1/query', query)).body as unknown as Answered;
    expect(answer.responses[0]?.hits.total).toMatchObject({ value: 0, relation: 'gte' });
    const late = { inserts: { late: { text: 'late' } }, sync_level: 'enrichments' };
    expect(await wire.send('POST', '/db/v1/tables/notes/batch', late)).toMatchObject({ status: 502 });
    service.always = () => undefined;
    await until(async () => (await statusOf(server.url)).readiness.state === 'ready', 120_000);
    expect(await statusOf(server.url)).toMatchObject({ doc_count: 100, error: '' });
  });

  test('can be named by a new index whose length is given, and not by another', async () => {
    using place = new FaultPlace();
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await wire.createTable('notes', {});
    const nobody = { provider: 'openai', model: 'm', url: 'http://127.0.0.1:9/v1' };
    const create = (dimension?: number) =>
      wire.send('POST', '/db/v1/tables/notes/indexes/words', {
        type: 'embeddings',
        field: 'text',
        dimension,
        embedder: nobody,
      });
    expect(await create()).toMatchObject({ status: 503, body: { code: 'embedder_unavailable' } });
    expect(await create(8)).toMatchObject({ status: 201 });
    await insert(wire, 1);
    await until(async () => (await statusOf(server.url)).readiness.pending_reasons.includes('embedder_unavailable'));
  });
});
