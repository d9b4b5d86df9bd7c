import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { S3Client } from 'bun';
import S3rver from 's3rver';
import sharp from 'sharp';
import type { ConnectionOptions } from '../../src/config/named-sections/connection-options.ts';
import { type TemplateContent, TemplateMedia } from '../../src/enrichment/media/template-media.ts';
import { Templates } from '../../src/enrichment/template/templates.ts';
import { MediaFetcher } from '../../src/inference/media/fetch-media.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { pdfOf } from '../support/files/pdf-file.ts';
import { poolOfTests } from '../support/inference/inference-pool.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

const pool = poolOfTests();
const settings = { threads: 1, contextTokensMax: 64, parallelSequences: 1 };
const { signal } = new AbortController();
const templates = new Templates(systemClock, 60_000);
const article =
  'A paragraph of an article, long enough, with commas, so that it is found to be what the page is about.';
const page = `<html><head><title>On tea</title></head><body><nav><a href="/">Home</a></nav><article><h1>On tea</h1>${`<p>${article}</p>`.repeat(5)}</article><script>track()</script></body></html>`;

interface Opened {
  readonly connections?: Readonly<Record<string, Partial<ConnectionOptions>>>;
  readonly paths?: readonly string[];
  readonly bounds?: object;
  readonly blockPrivateAddresses?: boolean;
}

function open({ connections = {}, paths = [], bounds = {}, blockPrivateAddresses = false }: Opened = {}) {
  const fetcher = (isBlocked: boolean) =>
    new MediaFetcher({
      policy: { allowedHosts: [], blockPrivateAddresses: isBlocked, deadlineMs: 30_000 },
      clock: systemClock,
      resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
    });
  return new TemplateMedia({
    bounds: { downloadBytesMax: 2 ** 20, concurrentMax: 0, edgeMax: 64, ...bounds },
    fetcher: fetcher(blockPrivateAddresses),
    trustedFetcher: fetcher(false),
    pool: pool(),
    settings,
    credentials: { resolve: (text) => text.replace('secret:', '') },
    connections: () => new Map(Object.entries(connections)) as ReadonlyMap<string, ConnectionOptions>,
    paths: () => paths,
  });
}

function resolve(media: TemplateMedia, template: string, document: object): Promise<TemplateContent[]> {
  return media.resolve(templates.render(template, document), { signal });
}

const dataUri = (type: string, bytes: Uint8Array | string) =>
  `data:${type};base64,${Buffer.from(bytes).toString('base64')}`;
const picture = (width: number, height: number, format: 'png' | 'jpeg' = 'png') =>
  sharp({ create: { width, height, channels: 3, background: '#204060' } })
    .toFormat(format)
    .toBuffer();
const sizeOf = async (content: TemplateContent | undefined) => {
  if (typeof content !== 'object') throw new Error(`this is no image: ${content}`);
  const { width, height, format } = await sharp(Buffer.from(content.base64, 'base64')).metadata();
  return { width, height, format, mediaType: content.mediaType };
};

describe('media of a template', () => {
  test('that are images are shown as they are, or smaller where they are large', async () => {
    const small = await picture(32, 16);
    const [text, shown, large] = await resolve(open(), 'x{{media url=a}}{{media url=b}}', {
      a: dataUri('image/png', small),
      b: dataUri('image/jpeg', await picture(640, 160, 'jpeg')),
    });
    expect([text, shown]).toEqual(['x', { mediaType: 'image/png', base64: small.toString('base64') }]);
    expect(await sizeOf(large)).toEqual({ width: 64, height: 16, format: 'jpeg', mediaType: 'image/jpeg' });
  });

  test('that are PDF are their text, or a picture of the first page', async () => {
    const pdf = dataUri('application/pdf', pdfOf('The first page', 'and the second'));
    const [text, image] = await resolve(open(), '{{media url=pdf}}{{media url=pdf as="image"}}', { pdf });
    expect(text).toBe('The first page\n\nand the second');
    expect(await sizeOf(image)).toEqual({ width: 64, height: 32, format: 'png', mediaType: 'image/png' });
  });

  test('that are long PDF hold up no other document', async () => {
    const spec = { backend: 'document', settings } as const;
    const ended: string[] = [];
    const lines = Array.from({ length: 900 }, (_, at) => `page ${at}`);
    await pool().run(spec, 'readHtml', { html: page, name: 'a page' });
    await Promise.all([
      pool()
        .run(spec, 'readPdf', { file: pdfOf(...lines), name: 'a file', charsMax: 100_000 })
        .then(({ text }) => ended.push(text.slice(-8))),
      pool()
        .run(spec, 'readHtml', { html: page, name: 'a page' })
        .then(({ title }) => ended.push(title)),
    ]);
    expect(ended).toEqual(['On tea', 'page 899']);
  });

  test('that are HTML are what there is to read in it', async () => {
    const [text] = await resolve(open(), '{{media url=html}}', { html: dataUri('text/html', page) });
    expect(text).toStartWith(`On tea\n${article}\n${article}`);
    expect(text).not.toMatch(/Home|track/);
    const short = dataUri('text/html', '<p>one<p>two');
    expect(await resolve(open(), '{{media url=short}}', { short })).toEqual(['one\ntwo']);
  });

  test('that are plain texts are these texts', async () => {
    const note = dataUri('text/plain; charset=utf-8', 'ä note');
    expect(await resolve(open(), '{{media url=note}}!', { note })).toEqual(['ä note', '!']);
  });

  test.each([
    ['a broken PDF', dataUri('application/pdf', '%PDF-1.4 nonsense'), 'is no PDF that can be read'],
    ['a broken image', dataUri('image/png', '\u0089PNG\r\n\u001a\nx'), 'is none of PNG'],
    ['a program', dataUri('application/octet-stream', '\u007fELF'), 'is none of PNG'],
    ['text in another encoding', dataUri('text/plain', Uint8Array.of(0xff, 0xfe)), 'is not text in UTF-8'],
    ['another scheme', 'ftp://example.org/x', 'must be a data URI or an http or https URL'],
    ['a URL with a password', 'http://a:b@example.org/', 'may not carry a name or password'],
  ])('%s is refused', async (_name, url, sentence) => {
    const resolved = resolve(open(), '{{media url=url}}', { url });
    await expect(resolved).rejects.toMatchObject({ code: 'invalid_media' });
    await expect(resolved).rejects.toThrow(sentence);
  });

  test('share one budget of bytes and one of pixels, whatever they come as', async () => {
    const note = dataUri('text/plain', 'x'.repeat(600));
    const media = open({ bounds: { downloadBytesMax: 1_000 } });
    expect(await resolve(media, '{{media url=note}}', { note })).toHaveLength(1);
    const both = resolve(media, '{{media url=note}}{{media url=note}}', { note });
    await expect(both).rejects.toMatchObject({ code: 'media_too_large' });
    const url = dataUri('image/png', await picture(1_500, 1_500));
    const [shown] = await resolve(open({ bounds: { downloadBytesMax: 2 ** 26, concurrentMax: 3 } }), '{{media url}}', {
      url,
    });
    expect(await sizeOf(shown)).toMatchObject({ width: 64, height: 64 });
    const tooMany = resolve(open({ bounds: { concurrentMax: 2 } }), '{{media url}}', { url });
    await expect(tooMany).rejects.toMatchObject({ code: 'media_too_large' });
  });

  test('that nest without end, or have very many elements, are read in time', async () => {
    const deep = dataUri('text/html', `${'<div>'.repeat(30_000)}end`);
    const wide = dataUri('text/html', `<article>${'<p>a, b</p>'.repeat(18_000)}</article>`);
    const [first, second] = await resolve(open(), '{{media deep}}{{media wide}}', { deep, wide });
    expect(first).toBe('end');
    expect(second).toStartWith('a, b\na, b\n');
  }, 120_000);
});

describe('media over HTTP', () => {
  let server: Bun.Server<undefined>;
  beforeAll(() => {
    server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: ({ url }) =>
        url.endsWith('/page')
          ? new Response(page, { headers: { 'content-type': 'text/html; charset=utf-8' } })
          : new Response('gone', { status: 404 }),
    });
  });
  afterAll(() => server.stop(true));

  test('are fetched', async () => {
    const [text] = await resolve(open(), '{{media url=url}}', { url: `${server.url}page` });
    expect(text).toContain(article);
  });

  test('are not asked for at private addresses, unless the operator allows these', async () => {
    const fetched = resolve(open({ blockPrivateAddresses: true }), '{{media url=url}}', { url: `${server.url}page` });
    await expect(fetched).rejects.toThrow('may not be fetched from a private address');
  });

  test('that are gone are a fault of the document', async () => {
    const fetched = resolve(open(), '{{media url=url}}', { url: `${server.url}nothing` });
    await expect(fetched).rejects.toMatchObject({ code: 'image_not_found' });
  });
});

describe('files', () => {
  const root = new TemporaryDirectory();
  afterAll(() => root[Symbol.dispose]());
  const inside = join(root.path, 'inside');
  mkdirSync(inside);
  writeFileSync(join(inside, 'note.html'), '<!doctype html><p>a note');
  writeFileSync(join(root.path, 'secret.html'), '<!doctype html><p>a secret');
  writeFileSync(`${inside}-2.html`, '<!doctype html><p>a neighbour');
  const read = async (media: TemplateMedia, path: string) =>
    (await resolve(media, '{{media url}}', { url: `file://${path}` }))[0];

  test('are read below the directories that are allowed, and through connections', async () => {
    expect(await read(open({ paths: [inside] }), join(inside, 'note.html'))).toBe('a note');
    const connection = { kind: 'external_io', protocol: 'filesystem', root: inside } as const;
    const readable = open({ connections: { files: { ...connection, capabilities: ['media.read'] } } });
    expect(await read(readable, join(inside, 'note.html'))).toBe('a note');
    const backups = open({ connections: { files: { ...connection, capabilities: ['backup.write'] } } });
    await expect(read(backups, join(inside, 'note.html'))).rejects.toThrow('files may not be read from there');
  });

  test('are read nowhere else: not by "..", links, names that begin alike, devices or other hosts', async () => {
    const media = open({ paths: [inside] });
    symlinkSync(join(root.path, 'secret.html'), join(inside, 'link.html'));
    for (const path of [
      join(root.path, 'secret.html'),
      `${inside}/../secret.html`,
      `${inside}/%2e%2e/secret.html`,
      join(inside, 'link.html'),
      `${inside}-2.html`,
      '/dev/zero',
      '/proc/self/environ',
    ]) {
      await expect(read(media, path)).rejects.toThrow('files may not be read from there');
    }
    await expect(read(media, inside)).rejects.toMatchObject({ code: 'invalid_media' });
    await expect(resolve(media, '{{media url}}', { url: `file://other${inside}/note.html` })).rejects.toThrow(
      'this is not the address of a file',
    );
    await expect(read(media, `${inside}/a%2fb`)).rejects.toThrow('this is not the address of a file');
  });

  test('are off unless something allows them', async () => {
    await expect(read(open(), join(inside, 'note.html'))).rejects.toThrow('files may not be read from there');
    await expect(read(open(), '/no/such/file')).rejects.toThrow('files may not be read from there');
  });
});

describe('objects of a store', () => {
  const directory = new TemporaryDirectory();
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory: directory.path,
    configureBuckets: ['photos', 'private'].map((name) => ({ name, configs: [] })),
  });
  let endpoint = '';
  const key = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };
  beforeAll(async () => {
    const { port } = await server.run();
    endpoint = `http://127.0.0.1:${port}`;
    for (const bucket of ['photos', 'private']) {
      await new S3Client({ endpoint, bucket, ...key }).write('2026/a b.html', '<!doctype html><p>an object');
    }
  });
  afterAll(async () => {
    await server.close();
    directory[Symbol.dispose]();
  });

  const connection = () => ({
    kind: 'external_io' as const,
    protocol: 's3' as const,
    endpoint,
    buckets: ['photos'],
    prefix: '2026/',
    accessKeyId: key.accessKeyId,
    secretAccessKey: `secret:${key.secretAccessKey}`,
    capabilities: ['media.read'],
  });
  const read = async (more: object, path: string) => {
    const media = open({ connections: { store: { ...connection(), ...more } }, blockPrivateAddresses: true });
    return (await resolve(media, '{{media url}}', { url: `s3://${new URL(endpoint).host}/${path}` }))[0];
  };

  test('are read through a connection that allows it', async () => {
    expect(await read({}, 'photos/2026/a b.html')).toBe('an object');
  });

  test.each([
    ['another bucket', {}, 'private/2026/a b.html'],
    ['a key that begins otherwise', {}, 'photos/2025/a b.html'],
    ['a folder whose name begins as the prefix does', { prefix: '20' }, 'photos/2026/a b.html'],
    ['a connection for backups', { capabilities: ['backup.write'] }, 'photos/2026/a b.html'],
    ['a connection that leads elsewhere', { endpoint: 'http://127.0.0.1:1' }, 'photos/2026/a b.html'],
  ])('are refused: %s', async (_name, more, path) => {
    await expect(read(more, path)).rejects.toThrow('no connection allows objects to be read from there');
  });

  test('that are not there are a fault of the document, and their address is not shown', async () => {
    const missing = read({}, 'photos/2026/none.html');
    await expect(missing).rejects.toMatchObject({ code: 'image_not_found' });
    const error = await missing.catch((thrown: unknown) => thrown);
    expect(String(error)).not.toContain('X-Amz');
    await expect(read({}, 'photos/2026/../../private/x')).rejects.toThrow('a key may not have');
  });
});
