import { afterAll, beforeAll, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UpstreamServer } from '../../support/elsewhere/upstream-server.ts';
import { until } from '../../support/fault/until.ts';
import { pdfOf } from '../../support/files/pdf-file.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

const files = new TemporaryDirectory();
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    environment: {
      SUNDEW__INFERENCE__CONTENT_SECURITY__ALLOWED_PATHS: files.path,
      SUNDEW__INFERENCE__CONTENT_SECURITY__MAX_DOWNLOAD_SIZE: '200KiB',
    },
  });
  const embedder = { provider: 'mock', model: 'words', dimensions: 256 };
  const words = { type: 'embeddings', template: '{{title}}\n{{media url=source}}', embedder };
  await server.send('POST', '/db/v1/tables/library', { indexes: { words } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  files[Symbol.dispose]();
});

const dataUri = (type: string, bytes: Uint8Array | string) =>
  `data:${type};base64,${Buffer.from(bytes).toString('base64')}`;
const write = (inserts: object, sync_level: string) =>
  server.send<{ status?: string; error?: string; code?: string }>('POST', '/db/v1/tables/library/batch', {
    inserts,
    sync_level,
  });
const ask = async (semantic_search: string) =>
  hitKeys(
    await server.send('POST', '/db/v1/query', { table: 'library', semantic_search, indexes: ['words'], limit: 1 }),
  );

test('documents are found by the text of the PDF, pages and files that their template names', async () => {
  writeFileSync(join(files.path, 'note.txt.html'), '<!doctype html><p>sailing across the northern ocean');
  const inserts = {
    pdf: { title: 'A', source: dataUri('application/pdf', pdfOf('Growing apples and pears in a garden')) },
    page: { title: 'B', source: dataUri('text/html', '<p>the history of steam locomotives</p><script>x</script>') },
    file: { title: 'C', source: `file://${files.path}/note.txt.html` },
    plain: { title: 'nothing but a title about glass beads' },
  };
  expect((await write(inserts, 'full_index')).status).toBe(201);
  expect(await ask('apples in a garden')).toEqual(['pdf']);
  expect(await ask('history of steam')).toEqual(['page']);
  expect(await ask('the northern ocean')).toEqual(['file']);
  expect(await ask('glass beads')).toEqual(['plain']);
});

test('a question may name media, too: its template gives the text that lies there', async () => {
  const pdf = dataUri('application/pdf', pdfOf('steam locomotives'));
  const asked = (semantic_search: string, embedding_template: string) =>
    server.send<{ error?: string }>('POST', '/db/v1/tables/library/query', {
      semantic_search,
      embedding_template,
      indexes: ['words'],
      limit: 1,
    });
  expect(hitKeys(await asked(pdf, 'history of {{media url=this}}'))).toEqual(['page']);
  const refused = await asked('file:///etc/passwd', '{{media url=this}}');
  expect(refused.status).toBe(400);
  expect(refused.body.error).toContain('files may not be read from there');
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
  const mixed = await asked(`data:image/png;base64,${png}`, 'like {{media url=this}}');
  expect([mixed.status, mixed.body.error]).toEqual([400, expect.stringContaining('a text or one image by itself')]);
});

test('a document whose medium cannot be read stays, and is told in the status; with enrichments it is not written', async () => {
  const broken = { title: 'broken', source: dataUri('application/pdf', '%PDF-1.4 nonsense') };
  expect((await write({ broken }, 'write')).status).toBe(201);
  await until(async () => {
    const path = '/db/v1/tables/library/indexes/words';
    const { body } = await server.send<{ status: { source_coverage: { failed: number; retrying: number } } }>(
      'GET',
      path,
    );
    const { failed, retrying } = body.status.source_coverage;
    return failed + retrying > 0;
  });
  expect((await server.send('GET', '/db/v1/tables/library/lookup/broken')).status).toBe(200);
  const refused = await write({ secret: { title: 'x', source: 'file:///etc/passwd' } }, 'enrichments');
  expect(refused.body.error).toContain('files may not be read from there');
  expect(refused.status).toBeGreaterThanOrEqual(400);
  expect((await server.send('GET', '/db/v1/tables/library/lookup/secret')).status).toBe(404);
});

test('M01, M03: an address that is not public is not asked, and a medium that is too large is not read; the documents stay', async () => {
  await using inside = new UpstreamServer(() => new Response('<p>the secret of the network</p>'));
  const large = dataUri('text/plain', 'x'.repeat(300_000));
  const inserts = {
    inside: { title: 'inside', source: `${inside.url}/page.html` },
    metadata: { title: 'metadata', source: 'http://169.254.169.254/latest/meta-data' },
    named: { title: 'named', source: 'http://localhost./page.html' },
    large: { title: 'large', source: large },
  };
  expect((await write(inserts, 'full_index')).body.status).toBe('committed_repair_required');
  for (const [key, code] of Object.entries({
    inside: 'invalid_media',
    metadata: 'invalid_media',
    named: 'invalid_media',
    large: 'media_too_large',
  })) {
    const path = `/db/v1/tables/library/documents/${key}`;
    expect((await server.send('GET', path)).status).toBe(200);
    const { body } = await server.send<{ artifacts: [{ code?: string; reason?: string }] }>('GET', `${path}/artifacts`);
    expect([key, body.artifacts[0].code]).toEqual([key, code]);
    expect(body.artifacts[0].reason).not.toContain('secret');
  }
  expect(inside.requests).toEqual([]);
  expect(await ask('secret of the network')).not.toEqual(['inside']);
});
