import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildBundle, bundledMain, bundleIsCurrent } from '../../../scripts/bundle.ts';
import { ChildServer } from '../../support/fault/child-server.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

// `bun run start` runs this bundle; every other test runs the sources.

const directory = new TemporaryDirectory();
let server: ChildServer;

beforeAll(async () => {
  if (!bundleIsCurrent()) await buildBundle();
  const models = ['--models-dir', join(import.meta.dir, '../../fixtures/models'), '--allow-downloads', 'false'];
  server = await ChildServer.start({
    dataDir: directory.path,
    main: bundledMain,
    arguments: models,
  });
});

afterAll(async () => {
  await server.kill();
  directory[Symbol.dispose]();
});

const post = (path: string, body: unknown) => fetch(server.url + path, { method: 'POST', body: JSON.stringify(body) });

describe('the bundled server', () => {
  test('stores, indexes and finds a document: the addon and the writer thread run', async () => {
    expect((await post('/db/v1/tables/t', {})).status).toBe(200);
    const written = await post('/db/v1/tables/t/batch', { inserts: { a: { title: 'tea' } }, sync_level: 'full_text' });
    expect(written.status).toBe(201);
    const answer = await post('/db/v1/query', { table: 't', full_text_search: { query: 'tea' } });
    expect(await answer.json()).toMatchObject({ responses: [{ hits: { hits: [{ _id: 'a' }] } }] });
  });

  test('refuses what it has no route for: the router of calls is a bundle of its own', async () => {
    expect((await fetch(`${server.url}/nothing`)).status).toBe(404);
    const refused = await fetch(`${server.url}/healthz`, { method: 'DELETE' });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  test('serves the files of its documentation page', async () => {
    expect((await fetch(`${server.url}/docs`)).status).toBe(200);
    expect((await fetch(`${server.url}/docs/swagger-ui.css`)).status).toBe(200);
  });

  test('runs models and chat templates in their own process and thread', async () => {
    const embedded = await post('/ai/v1/embeddings', { model: 'tiny-bert', input: 'tea' });
    expect(embedded.status).toBe(200);
    const chat = { model: 'chain', messages: [{ role: 'user', content: 'a' }], max_tokens: 2 };
    expect((await post('/ai/v1/chat/completions', chat)).status).toBe(200);
  });

  test('renders templates: their libraries are bundles of their own, which errors come from as from the sources', async () => {
    await post('/db/v1/tables/t/batch', { inserts: { b: { html: '<p>green &amp; black', tags: ['a', 'b'] } } });
    const embedder = { provider: 'service', model: 'tiny-bert' };
    const preview = async (template: string) => {
      const answer = await post('/db/v1/tables/t/indexes/x/preview', {
        config: { type: 'embeddings', template, embedder },
        keys: ['b'],
      });
      return {
        status: answer.status,
        body: (await answer.json()) as { documents?: { text: string }[]; code?: string },
      };
    };
    const rendered = await preview('{{scrubHtml html}} {{encodeToon tags}}');
    expect(rendered.body.documents?.map(({ text }) => text)).toEqual(['green & black [#2]: a,b']);
    expect(await preview('{{#if')).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  });

  test('opens its port from a small file: what reads configuration files, and all of the rest, lies beside it', () => {
    expect(statSync(bundledMain).size).toBeLessThan(256 * 1_024);
    for (const name of ['read-yaml.js', 'loaded-later.js', 'other-verbs.js', 'call-router.js', 'scrub-html.js'])
      expect(existsSync(join(bundledMain, '..', name))).toBe(true);
  });

  test('a process of a model loads the native code of its backend alone', () => {
    const folder = join(bundledMain, '..');
    const packagesIn = (name: string) => {
      const imports = readFileSync(join(folder, name), 'utf8').matchAll(/^import .* from "([^./][^"]*)"/gm);
      const native = ['@hyzyla/pdfium', 'node-llama-cpp', 'onnxruntime-node', 'sharp'];
      const named = new Set([...imports].map(([, from = '']) => from));
      return native.filter((each) => named.has(each)).join(' ');
    };
    const chunks = readdirSync(folder).filter((name) => name.startsWith('chunk-'));
    expect(packagesIn('host-main.js')).toBe('');
    expect(chunks.map(packagesIn).filter(Boolean).sort()).toEqual([
      '@hyzyla/pdfium sharp',
      'node-llama-cpp',
      'onnxruntime-node',
      'sharp',
    ]);
  });

  test('errors of what is loaded after the port is open keep their exit code and their hint', () => {
    const run = (...words: string[]) => {
      const { exitCode, stderr } = Bun.spawnSync([process.execPath, bundledMain, ...words], { stderr: 'pipe' });
      return { exitCode, stderr: stderr.toString() };
    };
    const taken = run('serve', '--port', '0', '--metrics-port', '0', '--data-dir', directory.path);
    expect(taken.exitCode).toBe(1);
    expect(taken.stderr.trim().split('\n').slice(-2)).toEqual([
      expect.stringContaining('sundew serve: '),
      'stop that process, or give this one another data directory',
    ]);
    expect(run('keys').exitCode).toBe(2);
    const file = join(directory.path, 'twice.yaml');
    writeFileSync(file, 'server: {port: 0}\nserver: {host: 127.0.0.1}\n');
    const twice = run('serve', '--config', file);
    expect(twice.exitCode).toBe(2);
    expect(twice.stderr).toContain('is not valid: Map keys must be unique');
  });
});

test('a process that has installed the packages makes the bundle: the first start of a checkout, wherever it lies', async () => {
  using directory = new TemporaryDirectory();
  const checkout = join(directory.path, 'a folder of Jürgen');
  const root = join(import.meta.dir, '../../..');
  for (const part of ['scripts', 'src', 'package.json', 'bun.lock'])
    cpSync(join(root, part), join(checkout, part), { recursive: true });
  const start = join(checkout, 'start.ts');
  writeFileSync(
    start,
    `import { buildBundleApart, bundleIsCurrent } from './scripts/bundle.ts';
     import { symlinkSync } from 'node:fs';
     if (bundleIsCurrent()) throw new Error('no bundle was made yet');
     symlinkSync(process.argv[2], Bun.fileURLToPath(new URL('node_modules', import.meta.url)));
     await buildBundleApart();`,
  );
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, start, join(root, 'node_modules')], { stderr: 'pipe' });
  expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: '' });
  expect(existsSync(join(checkout, 'build/server/main.js'))).toBe(true);
});
