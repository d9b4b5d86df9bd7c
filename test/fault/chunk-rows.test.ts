import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { ModelService } from '../support/providers/model-service.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

setDefaultTimeout(180_000);

const documents = 300;
const chunksBefore = 5;
const chunksAfter = 2;
/** Texts of one batch: `enrichmentBatchItems` of the limits, and the chunks of the document that fills it. */
const batchTexts = 64 + chunksBefore;

interface Status {
  readiness: { state: string };
  source_coverage: { retrying: number; failed: number };
  doc_count: number;
  searchable_vectors: number;
}
interface Stored {
  _chunks?: { parts_chunks?: { _content: string }[] };
  _embeddings?: { parts?: number[][] };
}

const indexOf = ({ url }: ModelService) => ({
  type: 'embeddings',
  field: 'text',
  embedder: { provider: 'openai', model: 'words', dimensions: 8, url: `${url}/v1` },
  chunker: { provider: 'service', text: { target_tokens: 5, separator: '. ' } },
});

const sentencesOf = (key: number, count: number, version: string) =>
  Array.from({ length: count }, (_, n) => `${version}${key} part${n} of it.`);

async function statusOf(url: string): Promise<Status> {
  const response = await fetch(`${url}/db/v1/tables/notes/indexes/parts`);
  return ((await response.json()) as { status: Status }).status;
}

async function write(wire: WireClient, count: number, version: string): Promise<void> {
  const keys = Array.from({ length: documents }, (_, key) => key);
  const inserts = Object.fromEntries(
    keys.map((key) => [`k${key}`, { text: sentencesOf(key, count, version).join(' ') }]),
  );
  await wire.expect(201, 'POST', '/db/v1/tables/notes/batch', { inserts });
}

describe('an index with a chunker', () => {
  test('that is killed while it follows has exactly the chunks of the last texts, and embeds little twice', async () => {
    await using service = new ModelService('openai');
    using place = new FaultPlace();
    const isReady = async (url: string) => (await statusOf(url)).readiness.state === 'ready';
    /** Kills in the middle; a busy machine may look late, and the kill then comes behind the work. */
    const killWithin = async (server: { url: string; kill(): Promise<unknown> }, requests: number) => {
      const before = service.seen.length;
      await until(async () => service.seen.length >= before + requests || (await isReady(server.url)), 60_000);
      await server.kill();
    };
    {
      await using server = await place.start();
      const wire = new WireClient(server.url);
      await wire.createTable('notes', { num_shards: 1 });
      await write(wire, chunksBefore, 'a');
      await wire.expect(201, 'POST', '/db/v1/tables/notes/indexes/parts', indexOf(service));
      await killWithin(server, 3);
    }
    {
      await using server = await place.start();
      await write(new WireClient(server.url), chunksAfter, 'b');
      await killWithin(server, 3);
    }
    await using server = await place.start();
    await until(() => isReady(server.url), 120_000);
    expect(await statusOf(server.url)).toMatchObject({
      doc_count: documents,
      searchable_vectors: documents * chunksAfter,
      source_coverage: { retrying: 0, failed: 0 },
    });
    const stored = await new WireClient(server.url).scan('notes', { fields: ['_chunks', '_embeddings'] });
    for (let key = 0; key < documents; key += 1) {
      const { _chunks, _embeddings } = stored.get(`k${key}`) as Stored;
      expect(_chunks?.parts_chunks?.map((chunk) => chunk._content)).toEqual(sentencesOf(key, chunksAfter, 'b'));
      expect(_embeddings?.parts?.map((vector) => vector.length)).toEqual([8, 8]);
    }
    const wanted = service.texts.filter((text) => text.startsWith('b'));
    expect(new Set(wanted).size).toBe(documents * chunksAfter);
    expect(wanted.length).toBeLessThanOrEqual(documents * chunksAfter + batchTexts);
    expect((await server.stop()).code).toBe(0);
    expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
  });
});
