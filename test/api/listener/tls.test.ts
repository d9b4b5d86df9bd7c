import { describe, expect, test } from 'bun:test';
import { createPrivateKey } from 'node:crypto';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '../../../src/client/client.ts';
import { readTls, type TlsMaterial, validityOf } from '../../../src/http/listener/tls/tls-files.ts';
import { TlsReload } from '../../../src/http/listener/tls/tls-reload.ts';
import { defineRoute } from '../../../src/http/routing/route.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { otherVerbs } from '../../../src/other-verbs.ts';
import { runCommand } from '../../support/command-line.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { testListener } from '../../support/test-listener.ts';

const fixtures = join(import.meta.dir, '../../fixtures/tls');
const pem = (name: string) => readFileSync(join(fixtures, `${name}.pem`), 'utf8');
const material = (name: string, ca?: string): TlsMaterial => ({
  cert: pem(`${name}.cert`),
  key: pem(`${name}.key`),
  ca: ca === undefined ? undefined : pem(`${ca}.cert`),
});

function listening(tls: TlsMaterial, wait?: Promise<void>) {
  const described = { tag: 't', summary: 's', responses: { 200: { description: 'fine' } } } as const;
  const slow = defineRoute({
    ...described,
    method: 'GET',
    path: '/slow',
    access: 'open',
    handler: () => (wait ?? Promise.resolve()).then(() => 'slow'),
  });
  const fast = defineRoute({ ...described, method: 'GET', path: '/fast', access: 'open', handler: () => 'fast' });
  return testListener({ routes: [slow, fast] }, tls);
}

/** Asks on a connection of its own, trusting one certificate. */
async function ask(url: string, path: string, trusted: string, client?: TlsMaterial): Promise<string> {
  const own = client === undefined ? {} : { cert: client.cert, key: client.key };
  const options = { tls: { ca: pem(`${trusted}.cert`), ...own }, keepalive: false };
  try {
    return JSON.parse(await (await fetch(`${url}${path}`, options)).text()) as string;
  } catch {
    return 'refused';
  }
}

describe('TLS', () => {
  test('serves https, and no plain http on its port', async () => {
    await using server = listening(material('first'));
    expect(server.url).toStartWith('https://');
    expect([await ask(server.url, '/fast', 'first'), await ask(server.url, '/fast', 'second')]).toEqual([
      'fast',
      'refused',
    ]);
    await expect(fetch(server.url.replace('https', 'http'))).rejects.toThrow();
  });

  test('takes its port for itself', async () => {
    const { ServerListener } = await import('../../../src/http/listener/server-listener.ts');
    await using server = listening(material('first'));
    expect(() => new ServerListener('127.0.0.1', server.port)).toThrow();
    expect(() => new ServerListener('127.0.0.1', server.port, undefined, material('second'))).toThrow();
    expect(await ask(server.url, '/fast', 'first')).toBe('fast');
  });

  test('goes on with another certificate while requests of the one before are finished', async () => {
    const wait = Promise.withResolvers<void>();
    await using server = listening(material('first'), wait.promise);
    const pending = fetch(`${server.url}/slow`, { tls: { ca: pem('first.cert') } });
    while (server.app.inFlight.count === 0) await new Promise((resolve) => setImmediate(resolve));
    server.listener.useTls(material('second'));
    for (let i = 0; i < 20; i += 1) expect(await ask(server.url, '/fast', 'second')).toBe('fast');
    expect(await ask(server.url, '/fast', 'first')).toBe('refused');
    wait.resolve();
    const answer = await pending;
    expect([answer.headers.get('connection'), await answer.json()]).toEqual(['close', 'slow']);
  });

  test('takes no new connection for a certificate that comes while it stops', async () => {
    const wait = Promise.withResolvers<void>();
    await using server = listening(material('first'), wait.promise);
    const pending = fetch(`${server.url}/slow`, { tls: { ca: pem('first.cert') } });
    while (server.app.inFlight.count === 0) await new Promise((resolve) => setImmediate(resolve));
    const drained = server.listener.drain(server.app, 10_000, systemClock);
    server.listener.useTls(material('second'));
    expect(await ask(server.url, '/fast', 'second')).toBe('refused');
    wait.resolve();
    expect(await (await pending).json()).toBe('slow');
    expect(await drained).toBe(0);
  });

  test('asks clients for a certificate of their authority', async () => {
    await using server = listening(material('first', 'client'));
    const answers = [undefined, material('client'), material('stranger')].map((client) =>
      ask(server.url, '/fast', 'first', client),
    );
    expect(await Promise.all(answers)).toEqual(['refused', 'fast', 'refused']);
  });
});

describe('mutual TLS', () => {
  const file = (name: string) => join(fixtures, `${name}.pem`);
  const table = defineRoute({
    method: 'GET',
    path: '/db/v1/tables/:table',
    tag: 't',
    summary: 's',
    responses: { 200: { description: 'fine' } },
    access: 'open',
    handler: () => ({ name: 'shop' }),
  });
  const serving = () => testListener({ routes: [table] }, material('first', 'client'));

  test('takes the certificate of a command, from its options or from variables', async () => {
    await using server = serving();
    const run = (words: readonly string[], variables = {}) =>
      runCommand(otherVerbs, ['table', 'get', 'shop', '--url', server.url, ...words], variables);
    const own = ['--tls-cert', file('client.cert'), '--tls-key', file('client.key')];
    const trust = ['--tls-ca', file('first.cert')];
    expect(await run([...own, ...trust])).toMatchObject({ code: 0, explained: '' });
    const variables = {
      SUNDEW_TLS_CERT: file('client.cert'),
      SUNDEW_TLS_KEY: file('client.key'),
      SUNDEW_TLS_CA: file('first.cert'),
    };
    expect(await run([], variables)).toMatchObject({ code: 0, explained: '' });
    const explanations: [readonly string[], number, string][] = [
      [trust, 1, 'where the server asks for a certificate, give "--tls-cert" and "--tls-key"'],
      [own, 1, 'is from an unknown authority; name its own by "--tls-ca"'],
      [['--tls-cert', file('client.cert')], 2, '"--tls-cert" and "--tls-key" go together'],
      [[...own.slice(0, 3), file('first.key')], 2, 'is not the key of'],
      [['--tls-ca', file('first.key')], 2, 'it has no certificate'],
    ];
    for (const [words, code, explained] of explanations) {
      expect(await run(words)).toMatchObject({ code, explained: expect.stringContaining(explained) });
    }
  });

  test('has no use for a certificate where nothing is encrypted, or where no server is asked', async () => {
    const run = (...words: string[]) => runCommand(otherVerbs, [...words, '--tls-ca', file('first.cert')]);
    for (const [words, explained] of [
      [['table', 'list', '--url', 'http://127.0.0.1:1'], '"--tls-ca" is for an address of https'],
      [['table', 'list'], '"--tls-ca" is for a server; give "--url" too'],
      [['auth', 'users', 'list'], '"--tls-ca" is for a server; give "--url" too'],
    ] as const) {
      expect(await run(...words)).toMatchObject({ code: 2, explained: expect.stringContaining(explained) });
    }
  });

  test('takes the certificate of the typed client, by its own fetch', async () => {
    await using server = serving();
    const tls = { cert: pem('client.cert'), key: pem('client.key'), ca: pem('first.cert') };
    const client = connect(server.url, { fetch: (request) => fetch(request, { tls }) });
    expect(await client.request<{ name: string }>('GET', '/db/v1/tables/shop')).toEqual({ name: 'shop' });
    const without = connect(server.url, { retries: 0, fetch: (request) => fetch(request, { tls: { ca: tls.ca } }) });
    await expect(without.request('GET', '/db/v1/tables/shop')).rejects.toMatchObject({ code: 'connection_failed' });
  });
});

describe('files', () => {
  test('are read whole: a fault is told with the file that has it', () => {
    using directory = new TemporaryDirectory();
    const files = Object.fromEntries(
      ['cert', 'key', 'ca'].map((part) => [part, join(directory.path, `${part}.pem`)]),
    ) as { cert: string; key: string; ca: string };
    const damaged = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
    const faultWith = (cert: string, key: string, ca: string) => {
      for (const [part, text] of Object.entries({ cert, key, ca }))
        writeFileSync(join(directory.path, `${part}.pem`), text);
      try {
        return readTls(files).ca === ca ? 'none' : 'other';
      } catch (error) {
        return (error as Error).message.replace(`${directory.path}/`, '');
      }
    };
    const [cert, key, ca] = [pem('first.cert'), pem('first.key'), pem('client.cert')];
    const locked = createPrivateKey(key);
    const exported = { format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const;
    expect(faultWith(cert + ca, key, ca + cert)).toBe('none');
    expect(faultWith(cert + damaged, key, ca)).toBe('cert.pem cannot be used for TLS: it is not PEM');
    expect(faultWith(cert, key, ca + damaged)).toBe('ca.pem cannot be used for TLS: it is not PEM');
    expect(faultWith(cert, key, '')).toBe('ca.pem cannot be used for TLS: it has no certificate');
    expect(faultWith(cert, locked.export({ type: 'pkcs8', ...exported }), ca)).toContain('a passphrase protects it');
  });
});

describe('renewed files', () => {
  test('are taken up within seconds; what cannot be used leaves the one before in use, and is told once', async () => {
    using directory = new TemporaryDirectory();
    const files = { cert: join(directory.path, 'cert.pem'), key: join(directory.path, 'key.pem'), ca: undefined };
    const put = (name: string, parts: readonly ('cert' | 'key')[]) => {
      for (const part of parts) copyFileSync(join(fixtures, `${name}.${part}.pem`), files[part]);
    };
    put('first', ['cert', 'key']);
    const clock = new FakeClock();
    const stopping = new AbortController();
    const events: string[] = [];
    await using server = listening(readTls(files));
    const { listener } = server;
    const onFailed = (reason: string) => void events.push(reason.replace(directory.path, ''));
    const onLate = (late: string) => void events.push(late);
    const onReloaded = () => void events.push('reloaded');
    const reload = new TlsReload({ files, listener, clock, onReloaded, onFailed, onLate });
    const running = reload.run(stopping.signal);
    await clock.advance(20_000);
    put('second', ['cert']);
    await clock.advance(20_000);
    expect(await ask(server.url, '/fast', 'first')).toBe('fast');
    put('second', ['key']);
    await clock.advance(5_000);
    expect(await ask(server.url, '/fast', 'second')).toBe('fast');
    writeFileSync(files.key, 'nothing of a key');
    await clock.advance(5_000);
    expect(await ask(server.url, '/fast', 'second')).toBe('fast');
    expect(events).toEqual([
      expect.stringContaining('is not the key of'),
      'reloaded',
      expect.stringMatching(/key\.pem cannot be used for TLS: it is not PEM$/),
    ]);
    stopping.abort();
    await running;
  });

  test('that were not renewed are told of when a fifth of their time is left, and when none is', async () => {
    const files = { cert: join(fixtures, 'first.cert.pem'), key: join(fixtures, 'first.key.pem'), ca: undefined };
    const { fromMs, toMs } = validityOf(pem('first.cert'));
    const clock = new FakeClock(toMs - (toMs - fromMs) / 5 - 12_000);
    const stopping = new AbortController();
    await using server = listening(readTls(files));
    const { listener } = server;
    const events: string[] = [];
    const onLate = (late: string, untilMs: number) => void events.push(`${late} ${untilMs === toMs}`);
    const [onReloaded, onFailed] = [() => {}, () => {}];
    const running = new TlsReload({ files, listener, clock, onReloaded, onFailed, onLate }).run(stopping.signal);
    await clock.advance(10_000);
    expect(events).toEqual([]);
    await clock.advance(20_000);
    expect(events).toEqual(['expiring true']);
    clock.jump(toMs - clock.nowMs());
    await clock.advance(20_000);
    expect(events).toEqual(['expiring true', 'expired true']);
    stopping.abort();
    await running;
  });
});
