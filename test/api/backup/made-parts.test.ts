import { expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { until } from '../../support/fault/until.ts';
import { ModelService } from '../../support/providers/model-service.ts';
import { restore } from '../../support/restore-jobs.ts';
import { hitKeys, type TestServer } from '../../support/test-server.ts';

/** The work of models on documents comes back with them: no model is asked for it again. */

interface Status {
  readiness: { state: string };
  backfill_items_processed: number;
  source_coverage: { failed: number };
  doc_count: number;
  searchable_vectors: number;
}

const names = ['parts', 'terms', 'near'];
const statusOf = async (server: TestServer, index: string) =>
  (await server.send<{ status: Status }>('GET', `/db/v1/tables/notes/indexes/${index}`)).body.status;
const lookup = async (server: TestServer, key: string) =>
  (await server.send('GET', `/db/v1/tables/notes/lookup/${key}?fields=text,_embeddings,_artifacts,_chunks`)).body;
const ask = async (server: TestServer, index: string, semantic_search: string) =>
  hitKeys(await server.send('POST', '/db/v1/query', { table: 'notes', semantic_search, indexes: [index], limit: 1 }));

test.each([
  ['portable', false],
  ['native', false],
  ['portable', true],
  ['native', true],
])(
  'a restore of the format "%s" brings chunks, sparse vectors of chunks, artifacts and the indexes over them, and asks no model; increment: %p',
  async (format, isIncrement) => {
    await using service = new ModelService('openai');
    using place = new BackupPlace();
    const embedder = { provider: 'openai', model: 'words', dimensions: 16, url: `${service.url}/v1` };
    const chunker = { provider: 'service', text: { target_tokens: 4, separator: '. ' } };
    const managed = { type: 'embeddings', field: 'text', chunker };
    const texts = ['amber birch cedar. dune ember fern', 'gorse hazel iris', 'juniper kale lime. mint nettle oak'];
    const stored = new Map<string, unknown>();
    {
      await using server = await place.server();
      const send = (method: string, path: string, body: object) =>
        server.send(method, `/db/v1/tables/notes${path}`, body);
      const sparse = { provider: 'mock', model: 'sparse' };
      const indexes = { parts: { ...managed, embedder }, terms: { ...managed, sparse: true, embedder: sparse } };
      await send('POST', '', { num_shards: 3, indexes });
      await send('PUT', '/artifacts/pieces/enrichment', { kind: 'chunk', field: 'text', chunk_size: 18 });
      const producer_json = { type: 'embedder', config: embedder };
      await send('PUT', '/artifacts/vectors/enrichment', {
        kind: 'embedding',
        source_artifact_name: 'pieces',
        producer_json,
      });
      await send('POST', '/indexes/near', { type: 'embeddings', source_artifact_name: 'vectors' });
      const inserts = Object.fromEntries(texts.map((text, at) => [`${'!k~'.charAt(at)}${at}`, { text }]));
      expect((await send('POST', '/batch', { inserts, sync_level: 'full_index' })).status).toBe(201);
      const backUp = async (id: string, more: object) => {
        const request = { backup_id: id, location: place.location, ...more };
        expect((await server.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
      };
      if (isIncrement) {
        await backUp('full', { format });
        const again = { k1: { text: texts[1] }, '!0': { text: `${texts[0]}`, again: true } };
        expect((await send('POST', '/batch', { inserts: again, sync_level: 'full_index' })).status).toBe(201);
      }
      for (const key of Object.keys(inserts)) stored.set(key, await lookup(server, key));
      await backUp('b', isIncrement ? { base_backup_id: 'full' } : { format });
    }
    const asked = service.seen.length;
    expect(asked).toBeGreaterThan(0);
    await using server = await place.server();
    expect(await restore(server, { backup_id: 'b', location: place.location })).toMatchObject({ phase: 'succeeded' });
    for (const name of names) {
      await until(async () => (await statusOf(server, name)).readiness.state === 'ready');
      expect(await statusOf(server, name)).toMatchObject({
        doc_count: 3,
        searchable_vectors: 5,
        backfill_items_processed: 0,
        source_coverage: { failed: 0 },
      });
    }
    for (const [key, document] of stored)
      expect(await lookup(server, key)).toEqual(document as Record<string, unknown>);
    expect(service.seen.length).toBe(asked);
    expect(await ask(server, 'terms', 'nettle')).toEqual(['~2']);
    for (const name of ['parts', 'near']) expect(await ask(server, name, 'gorse hazel iris')).toEqual(['k1']);
  },
);
