import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../support/fault/until.ts';
import { blue, colouredImage, green, red } from '../support/files/coloured-image.ts';
import { tone, wavFile } from '../support/files/wav-file.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { hitKeys, startTestServer, type TestServer } from '../support/test-server.ts';

/** Assets that models of this server make of images, sounds and texts which documents hold or name. */

type Json = Record<string, unknown>;
interface Traced {
  readonly name: string;
  readonly state: string;
  readonly code?: string;
  readonly reason?: string;
}

const models = Bun.fileURLToPath(new URL('../fixtures/models/', import.meta.url));
const files = new TemporaryDirectory();
const rate = 16_000;
const sound = (...parts: Float32Array[]) => wavFile(new Float32Array(parts.flatMap((part) => [...part])), rate);
const wavUri = (bytes: Uint8Array) => `data:audio/wav;base64,${Buffer.from(bytes).toString('base64')}`;
const producer = (type: string, model: string, more: Json = {}) =>
  JSON.stringify({ type, config: { provider: 'service', model, ...more } });

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    set: { '--models-dir': models, '--allow-downloads': 'false' },
    environment: { SUNDEW__INFERENCE__CONTENT_SECURITY__ALLOWED_PATHS: files.path },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  files[Symbol.dispose]();
});

async function createTable(table: string, enrichments: Record<string, Json>): Promise<void> {
  await server.send('POST', `/db/v1/tables/${table}`, {});
  for (const [name, enrichment] of Object.entries(enrichments)) {
    const { status, body } = await server.send(
      'PUT',
      `/db/v1/tables/${table}/artifacts/${name}/enrichment`,
      enrichment,
    );
    expect([name, status, body]).toEqual([name, 200, {}]);
  }
}

const write = (table: string, inserts: Json, sync_level = 'full_index') =>
  server.send('POST', `/db/v1/tables/${table}/batch`, { inserts, sync_level });
const artifactsOf = async (table: string, key: string) =>
  ((await server.send<Json>('GET', `/db/v1/tables/${table}/documents/${key}?fields=_artifacts`)).body._artifacts ??
    {}) as Record<string, Json>;
const traceOf = async (table: string, key: string) =>
  (await server.send<{ artifacts: Traced[] }>('GET', `/db/v1/tables/${table}/documents/${key}/artifacts`)).body
    .artifacts;

describe('a reader', () => {
  test('makes the text of an image that a member holds or a template names; it is cut, embedded and searched', async () => {
    const read = { kind: 'asset', field: 'scan', producer_json: producer('reader', 'tiny-reader') };
    await createTable('pages', {
      read: { ...read, full_text_index: true },
      page: { ...read, field: undefined, template: 'Page {{number}}: {{media url=scan}}.' },
      words: { kind: 'chunk', source_artifact_name: 'read', chunk_size: 8 },
      vectors: { kind: 'embedding', source_artifact_name: 'words', producer_json: producer('embedder', 'tiny-bert') },
    });
    const image = await colouredImage([red, blue, green, red], 64);
    writeFileSync(join(files.path, 'page.png'), Buffer.from(image.slice(image.indexOf(',') + 1), 'base64'));
    const inserts = { held: { scan: image, number: 1 }, named: { scan: `file://${files.path}/page.png` }, none: {} };
    expect((await write('pages', inserts)).status).toBe(201);
    for (const key of ['held', 'named']) {
      const { read, vectors } = await artifactsOf('pages', key);
      expect(read).toMatchObject({ kind: 'asset', content_type: 'text/plain', value: 'red blue brown red' });
      expect(vectors).toMatchObject({ kind: 'embedding', vectors: 3 });
    }
    expect((await artifactsOf('pages', 'held')).page).toMatchObject({ value: 'Page 1: red blue brown red.' });
    expect((await artifactsOf('pages', 'none')).read).toBeUndefined();
    const found = await server.send('POST', '/db/v1/tables/pages/query', { full_text_search: { query: 'brown' } });
    expect(hitKeys(found).sort()).toEqual(['held', 'named']);
  });

  test('that gets no image leaves the document as it is, and the trace says why; before the commit the write is refused', async () => {
    await createTable('broken', {
      read: { kind: 'asset', field: 'scan', producer_json: producer('reader', 'tiny-reader') },
    });
    const good = await colouredImage([red, red, red, red]);
    const inserts = {
      cut: { scan: 'data:image/png;base64,iVBORw0KGgo=' },
      sound: { scan: wavUri(sound(tone(300, 1, rate))) },
      good: { scan: good },
    };
    expect((await write('broken', inserts)).body.status).toBe('committed_repair_required');
    expect((await artifactsOf('broken', 'good')).read).toMatchObject({ value: 'red red red red' });
    const [cut] = await traceOf('broken', 'cut');
    expect(cut).toMatchObject({ name: 'read', state: 'failed', code: 'invalid_media' });
    const failed = async () => (await traceOf('broken', 'sound'))[0]?.state !== 'pending';
    await until(failed);
    expect((await traceOf('broken', 'sound'))[0]?.reason).toContain('no image');
    for (const key of ['cut', 'sound']) {
      expect((await server.send('GET', `/db/v1/tables/broken/documents/${key}`)).status).toBe(200);
    }
    const refused = await write(
      'broken',
      { other: { scan: 'file:///etc/passwd' }, fine: { scan: good } },
      'enrichments',
    );
    expect([refused.status, refused.body.code]).toEqual([400, 'enrichment_failed']);
    expect((await server.send('GET', '/db/v1/tables/broken/documents/fine')).status).toBe(404);
  });
});

test('a text that a model has not finished says so', async () => {
  const cut = { max_tokens: 2 };
  await createTable('cut', {
    read: { kind: 'asset', field: 'scan', producer_json: producer('reader', 'tiny-reader', cut) },
    all: { kind: 'asset', field: 'scan', producer_json: producer('reader', 'tiny-reader') },
    told: { kind: 'asset', field: 'text', producer_json: producer('generator', 'chain', cut) },
    whole: { kind: 'asset', field: 'text', producer_json: producer('generator', 'chain') },
  });
  const scan = await colouredImage([red, blue, green, red], 64);
  expect((await write('cut', { d: { scan, text: 'hello' } })).status).toBe(201);
  const { read, all, told, whole } = await artifactsOf('cut', 'd');
  expect([read?.status, read?.truncated, told?.truncated]).toEqual(['ready', true, true]);
  for (const each of [all, whole]) expect(each).not.toHaveProperty('truncated');
});

test('a transcriber writes down a sound, in the language that it is told', async () => {
  const heard = {
    kind: 'asset',
    field: 'sound',
    producer_json: producer('transcriber', 'tiny-ear', { language: 'en' }),
  };
  await createTable('calls', { heard: { ...heard, full_text_index: true } });
  const [low, high, silence] = [tone(300, 1, rate), tone(3_000, 1, rate), new Float32Array(rate)];
  const inserts = { a: { sound: wavUri(sound(low, high, silence, low)) }, b: { sound: wavUri(sound(high)) } };
  expect((await write('calls', inserts, 'enrichments')).status).toBe(201);
  expect((await artifactsOf('calls', 'a')).heard).toMatchObject({ content_type: 'text/plain', value: 'red blue red' });
  const found = await server.send('POST', '/db/v1/tables/calls/query', { full_text_search: { query: 'red' } });
  expect(hitKeys(found)).toEqual(['a']);
});

test('an extractor makes JSON of a text, and of what a reader has made', async () => {
  const schema = { entities: ['animal', 'colour', 'person'] };
  const find = producer('extractor', 'tiny-spans', { schema });
  await createTable('stories', {
    found: { kind: 'asset', field: 'text', producer_json: find },
    read: { kind: 'asset', field: 'scan', producer_json: producer('reader', 'tiny-reader') },
    colours: { kind: 'asset', source_artifact_name: 'read', producer_json: find },
  });
  const scan = await colouredImage([red, red, red, red]);
  expect((await write('stories', { a: { text: 'The king and a quick brown fox.', scan } })).status).toBe(201);
  const { found, colours } = await artifactsOf('stories', 'a');
  expect(found).toMatchObject({
    content_type: 'application/json',
    value: {
      entities: [
        { label: 'person', text: 'king', start: 4, end: 8 },
        { label: 'colour', text: 'brown', start: 21, end: 26 },
        { label: 'animal', text: 'fox', start: 27, end: 30 },
      ],
    },
  });
  expect(JSON.stringify(colours?.value)).toContain('red');
});
