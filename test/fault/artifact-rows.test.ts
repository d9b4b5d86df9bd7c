import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { ModelService } from '../support/providers/model-service.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

setDefaultTimeout(180_000);

/** `ENRICHED_DOCUMENTS=20000` for the figure. */
const documents = Number(process.env.ENRICHED_DOCUMENTS ?? 200);
/**
 * The work that a kill repeats: `producerBatchItems` answers, and `enrichmentBatchItems`
 * chunks with those of the document that fills the batch.
 */
const answersInFlight = 8;
const chunksOfOne = 2;
const chunksInFlight = 64 + chunksOfOne;

type Made = Record<'summary' | 'pieces' | 'vectors', { value?: string; items?: { _content: string }[] } & object>;

const textOf = (key: number, version: string) => `${version}${key} alpha. ${version}${key} omega.`;
/** The answer of the mock generator, cut where a sentence ends. */
const piecesOf = (key: number, version: string) => [`You said: ${version}${key} alpha.`, `${version}${key} omega.`];

async function write(wire: WireClient, version: string): Promise<void> {
  for (let from = 0; from < documents; from += 1_000) {
    const keys = Array.from({ length: Math.min(1_000, documents - from) }, (_, at) => from + at);
    const inserts = Object.fromEntries(keys.map((key) => [`k${key}`, { text: textOf(key, version) }]));
    await wire.expect(201, 'POST', '/db/v1/tables/notes/batch', { inserts });
  }
}

/** A chain of three: an asset that a generator writes, its chunks, and their vectors. */
async function createEnrichments(wire: WireClient, { url }: ModelService): Promise<void> {
  const provider = { provider: 'openai', url: `${url}/v1`, api_key: 'k' };
  const generator = { type: 'generator', config: { ...provider, model: 'chat' } };
  const embedder = { type: 'embedder', config: { ...provider, model: 'words', dimensions: 8 } };
  const chunker_json = { provider: 'service', text: { target_tokens: 7, separator: '. ' } };
  const enrichments = {
    summary: { kind: 'asset', field: 'text', producer_json: generator },
    pieces: { kind: 'chunk', source_artifact_name: 'summary', chunker_json, full_text_index: true },
    vectors: { kind: 'embedding', source_artifact_name: 'pieces', producer_json: embedder },
  };
  for (const [name, enrichment] of Object.entries(enrichments)) {
    await wire.expect(200, 'PUT', `/db/v1/tables/notes/artifacts/${name}/enrichment`, enrichment);
  }
}

async function madeOf(wire: WireClient): Promise<Map<string, Partial<Made>>> {
  const stored = await wire.scan('notes', { fields: ['_artifacts'] });
  return new Map(
    [...stored].map(([key, document]) => [key, (document as { _artifacts?: Partial<Made> })._artifacts ?? {}]),
  );
}

/** Whether every artifact of every document is made from its last text. */
async function isMade(wire: WireClient, version: string): Promise<boolean> {
  const made = await madeOf(wire);
  const states = [...made].map(([key, { summary, pieces, vectors }]) => {
    const at = Number(key.slice(1));
    const contents = pieces?.items?.map(({ _content }) => _content);
    const isOwn =
      summary?.value === `You said: ${textOf(at, version)}` && contents?.join() === piecesOf(at, version).join();
    return isOwn && (vectors as { vectors?: number } | undefined)?.vectors === chunksOfOne;
  });
  return states.length === documents && states.every(Boolean);
}

describe('a chain of artifacts', () => {
  test('that is killed while it is made ends with each of them once, from the last texts, and makes little twice', async () => {
    await using service = new ModelService('openai');
    using place = new FaultPlace();
    const asked = (path: string) => service.seen.filter((request) => request.path === path);
    /** Kills in the middle of the work; a busy machine may look late, and the kill then comes behind it. */
    const killAfter = async (server: { url: string; kill(): Promise<unknown> }, requests: number, version: string) => {
      const before = service.seen.length;
      const wire = new WireClient(server.url);
      await until(async () => service.seen.length >= before + requests || (await isMade(wire, version)), 60_000);
      await server.kill();
    };
    {
      await using server = await place.start();
      const wire = new WireClient(server.url);
      await wire.createTable('notes', { num_shards: 1 });
      await write(wire, 'a');
      await createEnrichments(wire, service);
      await killAfter(server, 20, 'a');
    }
    {
      await using server = await place.start();
      await killAfter(server, 20, 'a');
    }
    {
      await using server = await place.start();
      await write(new WireClient(server.url), 'b');
      await killAfter(server, 20, 'b');
    }
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await until(() => isMade(wire, 'b'), 120_000);

    const trace = (await wire.expect(200, 'GET', '/db/v1/tables/notes/documents/k7/artifacts')).body;
    const state = 'ready';
    expect(trace).toMatchObject({ artifacts: [{ name: 'summary', state }, { state }, { name: 'vectors', state }] });
    const answers = asked('/v1/chat/completions').filter(({ text }) => text.includes('"b'));
    const embedded = asked('/v1/embeddings').flatMap(({ body }) => body.input as string[]);
    const wanted = embedded.filter((text) => /^(You said: )?b/.test(text));
    expect(new Set(wanted).size).toBe(documents * chunksOfOne);
    // One kill came while these were made.
    expect(answers.length).toBeGreaterThanOrEqual(documents);
    expect(answers.length).toBeLessThanOrEqual(documents + answersInFlight);
    expect(wanted.length).toBeLessThanOrEqual(documents * chunksOfOne + chunksInFlight);
    // The text of chunks is searched as soon as its index says that it holds it.
    const found = { table: 'notes', full_text_search: { query: 'said' }, count: true, wait_for_index_ms: 30_000 };
    const { body } = await wire.expect(200, 'POST', '/db/v1/query', found);
    expect(body).toMatchObject({ responses: [{ hits: { total: { value: documents, relation: 'exact' } } }] });
    expect((await server.stop()).code).toBe(0);
    expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
  });
});
