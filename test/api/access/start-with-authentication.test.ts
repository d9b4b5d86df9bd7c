import { Database } from 'bun:sqlite';
import { describe, expect, test } from 'bun:test';
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { basic, startGuardedServer } from '../../support/access.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer } from '../../support/test-server.ts';

const root = join(import.meta.dir, '../../..');

/** Runs the command line. Its standard error is joined to the output where it failed. */
async function sundew(args: readonly string[], environment: Record<string, string> = {}) {
  const child = Bun.spawn([process.execPath, join(root, 'src/main.ts'), ...args], {
    env: { ...process.env, ...environment },
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, output, errors };
}

async function statusOf(url: string, credential: string): Promise<number> {
  return (await fetch(`${url}/auth/v1/me`, { headers: { authorization: credential } })).status;
}

describe('the first start with authentication', () => {
  test('prints a key of an administrator once, outside of the log, and no later start does', async () => {
    using directory = new TemporaryDirectory();
    let key = '';
    {
      await using server = await startTestServer({ directory: directory.path, set: { '--auth': 'true' } });
      key = server.firstKey ?? '';
      expect(await statusOf(server.url, `Bearer ${key}`)).toBe(200);
      expect(server.logLines.join('')).not.toContain(key.slice(30, 60));
    }
    await using again = await startTestServer({ directory: directory.path, set: { '--auth': 'true' } });
    expect(again.firstKey).toBeUndefined();
    expect(await statusOf(again.url, `Bearer ${key}`)).toBe(200);
  });

  test('makes no key that it cannot show: a start that fails behind its port leaves that to the next', async () => {
    using directory = new TemporaryDirectory();
    const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
    const ports = ['--port', '0', '--metrics-port', String(other.port)];
    const refused = await sundew(['serve', '--auth', 'true', '--data-dir', directory.path, ...ports]);
    await other.stop(true);
    expect([refused.code, refused.output, refused.errors]).toEqual([
      1,
      '',
      expect.stringContaining('for metrics cannot be opened'),
    ]);
    const set = { '--auth': 'true' };
    const environment = { SUNDEW__AUDIT__FILE: '/proc/audit.jsonl' };
    const starting = startTestServer({ directory: directory.path, set, environment });
    await expect(starting).rejects.toThrow('cannot be written');
    await using server = await startTestServer({ directory: directory.path, set });
    expect(await statusOf(server.url, `Bearer ${server.firstKey}`)).toBe(200);
  });

  test('takes the password of "admin" from a variable instead, which a later start leaves unread', async () => {
    using directory = new TemporaryDirectory();
    {
      await using guarded = await startGuardedServer({ directory: directory.path });
      expect(guarded.server.firstKey).toBeUndefined();
      expect((await guarded.asAdmin('GET', '/auth/v1/me')).body).toMatchObject({ username: 'admin' });
    }
    const environment = { SUNDEW__AUTH__ADMIN_PASSWORD: 'a later password' };
    await using again = await startGuardedServer({ directory: directory.path, environment });
    expect((await again.asAdmin('GET', '/auth/v1/me')).status).toBe(200);
    expect((await again.as(basic('admin', 'a later password'), 'GET', '/auth/v1/me')).status).toBe(401);
  });

  test('is refused for a password that cannot be taken, without an open server', async () => {
    await expect(startGuardedServer({ environment: { SUNDEW__AUTH__ADMIN_PASSWORD: 'short' } })).rejects.toThrow(
      /8 to 256 bytes/,
    );
  });
});

/** Reads a stream until a pattern is in it. Returns all of the text so far. */
async function until(stream: ReadableStream<Uint8Array>, pattern: RegExp): Promise<string> {
  let text = '';
  for await (const chunk of stream.pipeThrough(new TextDecoderStream() as never) as unknown as AsyncIterable<string>) {
    text += chunk;
    if (pattern.test(text)) break;
  }
  return text;
}

describe('sundew serve with authentication and TLS', () => {
  test('prints the key on its standard output alone, and answers over https', async () => {
    using directory = new TemporaryDirectory();
    const tls = ['cert', 'key'].flatMap((part) => [`--tls-${part}`, join(root, `test/fixtures/tls/first.${part}.pem`)]);
    const words = ['serve', '--auth', 'true', '--port', '0', '--metrics-port', '0', '--data-dir', directory.path];
    const child = Bun.spawn([process.execPath, join(root, 'src/main.ts'), ...words, ...tls, '--log-format', 'json'], {
      stdout: 'pipe',
      stderr: 'pipe',
    });
    try {
      const [log, output] = await Promise.all([
        until(child.stderr, /"msg":"ready"/),
        until(child.stdout, /Authorization/),
      ]);
      const key = /^ {2}(\S+)$/m.exec(output)?.[1] ?? '';
      const url = /"url":"(https:[^"]+)"/.exec(log)?.[1] ?? '';
      expect(log).not.toContain(key);
      const ca = readFileSync(join(root, 'test/fixtures/tls/first.cert.pem'), 'utf8');
      const options = { headers: { authorization: `Bearer ${key}` }, tls: { ca } };
      expect((await fetch(`${url}/auth/v1/me`, options)).status).toBe(200);
      expect((await fetch(`${url}/auth/v1/me`, { tls: { ca } })).status).toBe(401);
    } finally {
      child.kill('SIGTERM');
      await child.exited;
    }
  });

  test('wants a certificate with its key', async () => {
    const refused = await sundew(['serve', '--tls-key', 'key.pem']);
    expect([refused.code, refused.errors]).toEqual([2, expect.stringContaining('both tls.cert and tls.key')]);
  });
});

describe('a start with users that cannot be read', () => {
  const damages: [string, string][] = [
    ['a grant of an unknown level', "UPDATE grants SET level = 'everything'"],
    ['metadata that is no JSON', "UPDATE principals SET metadata = '{'"],
    ['a row filter that is no object', "INSERT INTO row_filters VALUES ('admin', 'books', '[1]')"],
    ['a table that is gone', 'DROP TABLE api_keys'],
  ];
  test.each(damages)('%s: it is refused, never served without authentication', async (_, sql) => {
    using directory = new TemporaryDirectory();
    {
      await using _guarded = await startGuardedServer({ directory: directory.path });
    }
    const database = new Database(join(directory.path, 'catalog.db'));
    database.run(sql);
    database.close();
    await expect(startGuardedServer({ directory: directory.path })).rejects.toThrow();
  });
});

describe('a server of users that is started without authentication', () => {
  test('says so in its log', async () => {
    using directory = new TemporaryDirectory();
    {
      await using _guarded = await startGuardedServer({ directory: directory.path });
    }
    await using open = await startTestServer({ directory: directory.path });
    expect(open.logLines.some((line) => line.includes('authentication is off, though'))).toBe(true);
    expect((await open.send('GET', '/db/v1/status')).status).toBe(200);
  });
});

describe('a data directory', () => {
  test.each([
    [0o755, true],
    [0o750, false],
  ])('of mode %o that every user of the machine may read is told of: %p', async (mode, isTold) => {
    using directory = new TemporaryDirectory();
    chmodSync(directory.path, mode);
    await using server = await startTestServer({ directory: directory.path });
    expect(server.logLines.some((line) => line.includes('every user of the machine'))).toBe(isTold);
  });
});

describe('an address that other machines can reach', () => {
  test('is refused without authentication, with a sentence that says what to do', async () => {
    using directory = new TemporaryDirectory();
    const words = ['serve', '--data-dir', directory.path, '--port', '0', '--metrics-port', '0', '--host', '0.0.0.0'];
    const refused = await sundew(words);
    expect(refused.code).toBe(2);
    expect(refused.errors).toMatch(/reached from other machines.*--auth true.*--allow-insecure-public-bind/s);
  });
});

describe('sundew keys', () => {
  test('makes, lists and revokes keys while no server runs, and a server takes and refuses them', async () => {
    using directory = new TemporaryDirectory();
    const at = ['--data-dir', directory.path];
    const missing = await sundew(['keys', 'list', '--data-dir', join(directory.path, 'nothing')]);
    expect([missing.code, missing.errors]).toEqual([1, expect.stringContaining('is not a data directory')]);
    let user = '';
    {
      await using guarded = await startGuardedServer({ directory: directory.path });
      user = await guarded.user('ann', [{ resource: 'books', resource_type: 'table', type: 'read' }]);
      const locked = await sundew(['keys', 'create', ...at]);
      expect([locked.code, locked.errors]).toEqual([1, expect.stringContaining('is in use by process')]);
    }
    const made = await sundew(['keys', 'create', ...at, '--name', 'way back']);
    expect(made.errors).toBe('');
    const limited = await sundew([
      'keys',
      'create',
      ...at,
      '--user',
      'ann',
      '--permissions',
      'table:books:read',
      '--json',
    ]);
    const { key_id, encoded } = JSON.parse(limited.output) as { key_id: string; encoded: string };
    const more = await sundew(['keys', 'create', ...at, '--user', 'ann', '--permissions', 'table:books:admin']);
    expect([more.code, more.errors]).toEqual([1, expect.stringContaining('a key cannot have more than its user')]);
    const listed = await sundew(['keys', 'list', ...at]);
    expect(listed.output).toContain('way back');
    expect(listed.output).toContain(key_id);
    {
      await using guarded = await startGuardedServer({ directory: directory.path });
      const { url } = guarded.server;
      expect(await statusOf(url, `Bearer ${made.output.trim()}`)).toBe(200);
      expect(await statusOf(url, `Bearer ${encoded}`)).toBe(200);
      expect(await statusOf(url, user)).toBe(200);
    }
    expect((await sundew(['keys', 'revoke', key_id, ...at])).code).toBe(0);
    expect((await sundew(['keys', 'revoke', key_id, ...at])).code).toBe(1);
    await using guarded = await startGuardedServer({ directory: directory.path });
    expect(await statusOf(guarded.server.url, `Bearer ${encoded}`)).toBe(401);
  });

  test('is the way back in where no administrator is left to come in', async () => {
    using directory = new TemporaryDirectory();
    {
      await using _server = await startTestServer({ directory: directory.path });
    }
    const mistaken = await sundew(['keys', 'create', '--data-dir', directory.path, '--expires-in', 'soon']);
    expect([mistaken.code, mistaken.errors]).toEqual([2, expect.stringContaining('--expires-in takes a duration')]);
    const made = await sundew(['keys', 'create', '--data-dir', directory.path]);
    await using server = await startTestServer({ directory: directory.path, set: { '--auth': 'true' } });
    expect(server.firstKey).toBeUndefined();
    expect(await statusOf(server.url, `Bearer ${made.output.trim()}`)).toBe(200);
  });
});
