import { describe, expect, test } from 'bun:test';
import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Elysia } from 'elysia';
import { SundewError } from '../../../src/client/client.ts';
import { type OpenOptions, open } from '../../../src/embedded.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer } from '../../support/test-server.ts';

const settings = { storage: { reserve: 0 } };
const fixtureModels = join(import.meta.dir, '../../fixtures/models');
/** Of a test that starts another process, on a busy machine. */
const processMs = 120_000;

const told = (work: Promise<unknown>) => work.then(() => undefined).catch((error: unknown) => error as Error);

describe('a database in this process', () => {
  test('keeps what was written, and is closed whole', async () => {
    using directory = new TemporaryDirectory();
    {
      await using db = await open(directory.path, { settings });
      await db.createTable('notes');
      await db.table('notes').put('a', { text: 'kept' });
    }
    expect(existsSync(join(directory.path, 'catalog.db-wal'))).toBe(false);
    await using again = await open(directory.path, { settings });
    expect(await again.table('notes').get('a')).toEqual({ text: 'kept' });
  });

  test('tells the first key of an administrator once, with which the next open may do everything', async () => {
    using directory = new TemporaryDirectory();
    const secured = { ...settings, auth: { enabled: true } };
    let apiKey: string | undefined;
    {
      await using db = await open(directory.path, { settings: secured });
      apiKey = db.firstKey;
      expect(await told(db.tables())).toMatchObject({ code: 'unauthorized' });
    }
    await using again = await open(directory.path, { settings: secured, apiKey });
    expect(again.firstKey).toBeUndefined();
    await again.createTable('notes');
    expect(await again.tables()).toHaveLength(1);
  });

  test('stands beside another one', async () => {
    using first = new TemporaryDirectory();
    using second = new TemporaryDirectory();
    await using one = await open(first.path, { settings });
    const two = await open(second.path, { settings });
    await Promise.all([one, two].map((db) => db.createTable('notes')));
    await Promise.all([one.table('notes').put('a', { of: 'one' }), two.table('notes').put('a', { of: 'two' })]);
    expect(await two.table('notes').get('a')).toEqual({ of: 'two' });
    await two.close();
    expect(await one.table('notes').get('a')).toEqual({ of: 'one' });
    await one.table('notes').put('b', {}, { sync_level: 'full_text' });
  });

  test('is refused while the directory is in use, by the name of the process', async () => {
    using directory = new TemporaryDirectory();
    await using _db = await open(directory.path, { settings });
    const error = await told(open(directory.path, { settings }));
    expect(String(error)).toContain(`is in use by process ${process.pid}`);
    await using server = await startTestServer();
    expect(String(await told(open(server.directory, { settings })))).toContain('is in use');
  });

  test('refuses what comes after its close, and waits for what came before', async () => {
    using directory = new TemporaryDirectory();
    const db = await open(directory.path, { settings, retries: 0 });
    const table = await db.createTable('notes');
    const writing = table.put('a', { text: 'in time' }, { sync_level: 'full_text' });
    const closing = Promise.all([db.close(), db.close()]);
    const late = await told(table.get('a'));
    expect(late).toBeInstanceOf(SundewError);
    expect((late as SundewError).code).toBe('unavailable');
    await writing;
    await closing;
  });

  test('says at once, also to whoever would ask again, that it was closed', async () => {
    using directory = new TemporaryDirectory();
    const db = await open(directory.path, { settings });
    await db.close();
    const late = await told(db.tables());
    expect(late).toMatchObject({
      code: 'unavailable',
      retryable: false,
      message: 'the database was closed; open it again',
    });
    expect((await db.handler(new Request('http://any/db/v1/tables'))).status).toBe(503);
  });

  test('ends the scans that the program has left open when it closes, with the error of a closed one', async () => {
    using directory = new TemporaryDirectory();
    const db = await open(directory.path, { settings, retries: 0 });
    const table = await db.createTable('notes');
    const body = 'x'.repeat(4_096);
    for (const part of ['a', 'b', 'c']) {
      const keys = Array.from({ length: 500 }, (_, at) => `${part}${String(at).padStart(4, '0')}`);
      await table.batch({ inserts: Object.fromEntries(keys.map((key) => [key, { body }])) });
    }
    const left = table.scan();
    await left.next();
    // Its answer is there when the database closes, and nothing of it was read.
    const unread = table.scan();
    const first = unread.next();
    const startedMs = performance.now();
    await db.close();
    expect(performance.now() - startedMs).toBeLessThan(10_000);
    const closed = { code: 'unavailable', retryable: false, message: 'the database was closed; open it again' };
    const rest = async (scan: typeof left) => {
      for await (const _ of scan);
    };
    expect(await told(rest(left))).toMatchObject(closed);
    expect(await told(first.then(() => rest(unread)))).toMatchObject(closed);
    await using again = await open(directory.path, { settings });
    expect(await again.table('notes').get('a0000')).toEqual({ body });
  });

  test('lets a request of its handler be answered whole while it closes', async () => {
    using directory = new TemporaryDirectory();
    const db = await open(directory.path, { settings });
    await db.createTable('notes');
    const inserts = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`k${at}`, { body: 'x'.repeat(4_096) }]));
    await db.table('notes').batch({ inserts });
    const scan = await db.handler(new Request('http://any/db/v1/tables/notes/documents', { method: 'POST' }));
    const closing = db.close();
    expect((await scan.text()).trim().split('\n')).toHaveLength(900);
    await closing;
  });

  test.each([
    ['throws', '() => { throw new Error("full"); }'],
    ['rejects', '() => Promise.reject(new Error("full"))'],
  ])(
    'goes on when its log %s, and says so once',
    async (_how, log) => {
      using directory = new TemporaryDirectory();
      const script = `
      const { open } = await import(${JSON.stringify(new URL('../../../src/embedded.ts', import.meta.url).href)});
      const settings = { storage: { reserve: 0 }, log: { level: 'debug' } };
      await using db = await open(${JSON.stringify(directory.path)}, { settings, log: ${log} });
      const table = await db.createTable('notes');
      await table.put('a', { text: 'tea' }, { sync_level: 'full_text' });
      console.log(JSON.stringify(await table.get('a')));
    `;
      const child = Bun.spawn([process.execPath, '-e', script], {
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: processMs,
      });
      const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
      expect([await child.exited, ...said]).toEqual([
        0,
        '{"text":"tea"}\n',
        'sundew: the callback "log" has failed, and lines of the log are lost: full\n',
      ]);
    },
    processMs,
  );

  test('leaves nothing open behind a service that cannot be opened', async () => {
    using directory = new TemporaryDirectory();
    const audit = { file: join(directory.path, 'none/audit.jsonl') };
    expect(String(await told(open(directory.path, { settings: { ...settings, audit } })))).toContain('audit.file');
    await using _db = await open(directory.path, { settings });
  });

  test('goes on where it is while the program changes its working directory', async () => {
    using directory = new TemporaryDirectory();
    const before = process.cwd();
    process.chdir(directory.path);
    try {
      const audit = { file: 'audit.jsonl' };
      symlinkSync(fixtureModels, 'fixture-models');
      const inference = { models_dir: 'fixture-models', allow_downloads: false };
      await using db = await open('data', { settings: { ...settings, audit, inference } });
      process.chdir(before);
      expect(await db.inference.embed({ model: 'tiny-bert', input: 'tea' })).toHaveLength(1);
      const table = await db.createTable('notes');
      await table.put('a', { text: 'tea' }, { sync_level: 'full_text' });
      expect(await table.get('a')).toEqual({ text: 'tea' });
      for (const name of ['data/catalog.db', 'audit.jsonl']) expect(existsSync(join(directory.path, name))).toBe(true);
    } finally {
      process.chdir(before);
    }
  });

  test('refuses an unknown setting, and reads none of the environment', async () => {
    using directory = new TemporaryDirectory();
    const error = await told(open(directory.path, { settings: { storage: { reserv: 0 } } }));
    expect(String(error)).toContain('did you mean storage.reserve?');
    const unknown = await told(open(directory.path, { settings: { strage: { reserve: 0 } } }));
    expect(String(unknown)).toContain('settings has an unknown key "strage.reserve"; did you mean storage.reserve?');
    const otherDirectory = await told(open(directory.path, { settings: { storage: { data_dir: './elsewhere' } } }));
    expect(String(otherDirectory)).toContain(
      'the settings have "storage.data_dir", but the first argument of "open" names the directory',
    );
    process.env.SUNDEW__NOT__AN__OPTION = 'x';
    try {
      await using _db = await open(directory.path, { settings });
    } finally {
      delete process.env.SUNDEW__NOT__AN__OPTION;
    }
  });

  test.each([
    [{ setings: {} }, 'there is no option "setings"; did you mean settings?'],
    [{ settings: 'x' }, 'the option "settings" must be an object'],
    [{ log: 5 }, 'the option "log" must be a function'],
    [{ apiKey: 5 }, 'the option "apiKey" must be a string'],
    [{ retries: Number.NaN }, '"retries" must be a number from 0, not NaN'],
    [null, 'the options must be an object'],
  ])('refuses the options %p', async (options, message) => {
    using directory = new TemporaryDirectory();
    expect(String(await told(open(join(directory.path, 'none'), options as OpenOptions)))).toContain(message);
    expect(existsSync(join(directory.path, 'none'))).toBe(false);
  });

  test.each([undefined, '', 5, new URL('file:///tmp')])('refuses %p as its directory', async (directory) => {
    expect(String(await told(open(directory as string)))).toContain('the directory must be a text that is not empty');
  });

  test(
    'installs no handler of signals, and lets the process end by itself once it is closed',
    async () => {
      using directory = new TemporaryDirectory();
      const script = `
      const { open } = await import(${JSON.stringify(new URL('../../../src/embedded.ts', import.meta.url).href)});
      const db = await open(${JSON.stringify(directory.path)}, { settings: { storage: { reserve: 0 } } });
      const table = await db.createTable('notes');
      await table.put('a', { text: 'tea' }, { sync_level: 'full_text' });
      const found = await table.query({ full_text_search: { query: 'tea' } });
      const handlers = ['SIGTERM', 'SIGINT', 'SIGHUP'].map((signal) => process.listenerCount(signal));
      await db.close();
      console.log(JSON.stringify({ hits: found.hits.total.value, handlers }));
    `;
      const child = Bun.spawn([process.execPath, '-e', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
        timeout: processMs,
      });
      expect(JSON.parse(await new Response(child.stdout).text())).toEqual({ hits: 1, handlers: [0, 0, 0] });
      expect([await child.exited, child.signalCode]).toEqual([0, null]);
    },
    processMs,
  );
});

describe('its handler', () => {
  test('is mounted in an application of somebody else', async () => {
    using directory = new TemporaryDirectory();
    await using db = await open(directory.path, { settings });
    await db.createTable('notes');
    await db.table('notes').put('a/b', { text: 'tea' }, { sync_level: 'full_text' });
    const app = new Elysia()
      .get('/', () => 'mine')
      .mount('/search', db.handler)
      .listen({ port: 0, hostname: '127.0.0.1' });
    try {
      const base = `http://127.0.0.1:${app.server?.port}`;
      expect(await (await fetch(base)).text()).toBe('mine');
      const found = await fetch(`${base}/search/db/v1/tables/notes/documents/${encodeURIComponent('a/b')}`);
      expect([found.status, await found.json()]).toEqual([200, { text: 'tea' }]);
      const body = JSON.stringify({ full_text_search: { query: 'tea' } });
      const hosts = { host: 'example.org', origin: 'https://example.org' };
      const query = await fetch(`${base}/search/db/v1/tables/notes/query`, { method: 'POST', body, headers: hosts });
      expect([query.status, Object(await query.json()).responses[0].hits.total.value]).toEqual([200, 1]);
      expect((await fetch(`${base}/search/nothing`)).status).toBe(404);
    } finally {
      await app.stop(true);
    }
  });

  test('answers HEAD as a server does: status and headers of GET, and no body', async () => {
    await using server = await startTestServer();
    using directory = new TemporaryDirectory();
    await using db = await open(directory.path, { settings });
    const overHttp = (path: string, init: RequestInit) => fetch(`${server.url}${path}`, init);
    const here = (path: string, init: RequestInit) => db.handler(new Request(`http://any${path}`, init));
    const ask = async (send: typeof here, path: string, method: string) => {
      const response = await send(path, { method });
      const names = ['content-type', 'content-length', 'cache-control'];
      return [response.status, ...names.map((name) => response.headers.get(name)), await response.text()];
    };
    for (const send of [overHttp, here]) {
      await send('/db/v1/tables/notes', { method: 'POST', body: '{}' });
      await send('/db/v1/tables/notes/batch', { method: 'POST', body: '{"inserts": {"a": {"text": "thé"}}}' });
    }
    for (const path of ['/db/v1/tables/notes/documents/a', '/db/v1/tables/none', '/nowhere', '/healthz']) {
      const answer = await ask(here, path, 'HEAD');
      expect([path, ...answer]).toEqual([path, ...(await ask(overHttp, path, 'HEAD'))]);
      expect([answer.at(-1), (await ask(here, path, 'GET')).at(-1)]).toEqual(['', expect.stringMatching(/./)]);
    }
    await db.close();
    expect((await ask(here, '/healthz', 'HEAD')).at(-1)).toBe('');
  });

  test('takes a body whose length no header names', async () => {
    using directory = new TemporaryDirectory();
    await using db = await open(directory.path, { settings });
    await db.createTable('notes');
    const send = (body: string | ReadableStream) =>
      db.handler(new Request('http://any/db/v1/tables/notes/batch', { method: 'POST', body }));
    expect((await send('{"inserts":{"a":{}}}')).status).toBe(201);
    expect((await send(new Blob(['{"inserts":', '{"b":{}}}']).stream())).status).toBe(201);
    expect(await db.table('notes').get('b')).toEqual({});
  });
});
