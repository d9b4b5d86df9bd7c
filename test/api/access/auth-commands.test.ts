import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { otherVerbs } from '../../../src/other-verbs.ts';
import { basic, type GuardedServer, startGuardedServer, table } from '../../support/access.ts';
import { runCommand } from '../../support/command-line.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

/** `sundew auth`, as an administrator types it. */

let guarded: GuardedServer;
let directory: TemporaryDirectory;
let key: string;
beforeAll(async () => {
  guarded = await startGuardedServer();
  directory = new TemporaryDirectory();
  key = (await guarded.key('admin')).credential.slice('Bearer '.length);
});
afterAll(async () => {
  await guarded[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const runAs = (credential: string, words: string, ...more: string[]) =>
  runCommand(otherVerbs, ['auth', ...words.split(' '), ...more, '--url', guarded.server.url, '--key', credential]);
const run = (words: string, ...more: string[]) => runAs(key, words, ...more);
const done = { code: 0, printed: '', explained: '' };
const printed = async (words: string, ...more: string[]) => {
  const told = await run(words, ...more);
  expect([words, told.code, told.explained]).toEqual([words, 0, '']);
  return told.printed;
};
const passwordFile = (name: string, text: string) => directory.write(name, text);
const makeUser = (name: string, ...more: string[]) =>
  printed(`users create ${name} --password-file`, passwordFile(name, `password of ${name}\n`), ...more);

describe('users', () => {
  test('are made by a password in a file, listed, shown, given another password and removed', async () => {
    const made = await makeUser(
      'ann',
      '--permissions',
      'table:books:read,inference:*:read',
      '--metadata',
      '{"team":"red"}',
    );
    expect(JSON.parse(made)).toMatchObject({ username: 'ann', metadata: { team: 'red' } });
    const me = () => guarded.as(basic('ann', 'password of ann'), 'GET', '/auth/v1/me');
    expect((await me()).body).toMatchObject({
      username: 'ann',
      permissions: [table('books', 'read'), { type: 'read' }],
    });
    expect(await printed('users list')).toBe('admin\nann\n');
    expect(await printed('users list --json')).toBe('{"username":"admin"}\n{"username":"ann"}\n');
    expect(JSON.parse(await printed('users get ann'))).toMatchObject({ username: 'ann' });
    expect(await run('users password ann --password-file', passwordFile('next', 'another password'))).toEqual(done);
    expect((await me()).status).toBe(401);
    expect((await guarded.as(basic('ann', 'another password'), 'GET', '/auth/v1/me')).status).toBe(200);
    expect(await run('users delete ann')).toEqual(done);
    expect(await run('users get ann')).toMatchObject({ code: 1, printed: '' });
  });

  test('a password is read from standard input or from the variable, and never from the words', async () => {
    await makeUser('bob');
    const main = join(import.meta.dir, '../../../src/main.ts');
    const setBy = async (words: string[], input: string, environment: Record<string, string>) => {
      const at = ['--url', guarded.server.url];
      const child = Bun.spawn([process.execPath, main, 'auth', 'users', 'password', 'bob', ...words, ...at], {
        env: { ...process.env, SUNDEW_KEY: key, ...environment },
        stdin: Buffer.from(input),
        stderr: 'pipe',
      });
      expect([await child.exited, await new Response(child.stderr).text()]).toEqual([0, '']);
    };
    const statusOf = async (password: string) =>
      (await guarded.as(basic('bob', password), 'GET', '/auth/v1/me')).status;
    await setBy(['--password-file', '/dev/stdin'], 'by standard input\n', {});
    expect(await statusOf('by standard input')).toBe(200);
    await setBy([], '', { SUNDEW_PASSWORD: 'by the variable' });
    expect(await statusOf('by the variable')).toBe(200);
    expect((await run('users password bob --password secrets')).code).toBe(2);
    const none = await run('users password bob');
    expect(none).toMatchObject({ code: 2, printed: '' });
    expect(none.explained).toContain('--password-file, or in the variable SUNDEW_PASSWORD');
    expect(await statusOf('by the variable')).toBe(200);
  }, 60_000);
});

describe('permissions, roles and row filters', () => {
  test('are given, listed and taken back, of users and of roles', async () => {
    await makeUser('carl');
    expect(await run('permissions grant carl table:books:read')).toEqual(done);
    expect(await run('permissions grant role:staff table:notes:write')).toEqual(done);
    expect(await run('roles assign carl staff')).toEqual(done);
    expect(await run('roles assign role:staff group:all')).toEqual(done);
    expect(await printed('permissions list carl')).toBe('table:books:read\n');
    expect(JSON.parse(await printed('permissions list role:staff --json'))).toEqual(table('notes', 'write'));
    expect(await printed('roles list carl')).toBe('staff\n');
    expect(await printed('roles list role:staff')).toBe('group:all\n');
    expect(await printed('subjects list --kind role')).toBe('role:staff\trole\n');
    const filter = '{"term":{"team":{"$auth":"metadata.team"}}}';
    expect(JSON.parse(await printed('row-filters set role:staff notes --filter', filter))).toMatchObject({
      table: 'notes',
    });
    await printed('row-filters set carl * --file', directory.write('filter.json', '{"match_all":{}}'));
    expect(await printed('row-filters list role:staff')).toBe(`notes\t${filter}\n`);
    expect(JSON.parse(await printed('row-filters get carl *'))).toEqual({ table: '*', filter: { match_all: {} } });
    const { body } = await guarded.as(basic('carl', 'password of carl'), 'GET', '/auth/v1/me');
    expect(body).toMatchObject({
      permissions: [table('books', 'read'), table('notes', 'write')],
      roles: ['staff', 'group:all'],
    });
    for (const words of [
      'row-filters delete carl *',
      'permissions revoke carl table:books',
      'roles remove carl staff',
    ]) {
      expect([words, await run(words)]).toEqual([words, done]);
    }
    for (const words of ['permissions list carl', 'roles list carl', 'row-filters list carl']) {
      expect([words, await printed(words)]).toEqual([words, '']);
    }
  });
});

describe('keys', () => {
  test('are made and printed once, on standard output alone, listed without their secrets, and revoked', async () => {
    await makeUser('dora', '--permissions', 'table:books:read,table:books:write');
    const made = await run(
      'api-keys create dora --name reports --expires-in 720h --permissions table:books:read --row-filters',
      '{"books":{"term":{"year":1999}}}',
    );
    expect(made).toMatchObject({ code: 0, explained: '' });
    expect(made.printed).toMatch(/^[A-Za-z0-9+/=]+\n$/);
    const own = made.printed.trim();
    const me = await runAs(own, 'me');
    expect(JSON.parse(me.printed)).toMatchObject({ username: 'dora', permissions: [table('books', 'read')] });
    const listed = await printed('api-keys list dora');
    expect(listed).toMatch(/^[^\t]+\treports\t\d{4}-\d\d-\d\dT[^\t]+\n$/);
    const [id = ''] = listed.split('\t');
    expect(JSON.parse(await printed('api-keys list dora --json'))).toMatchObject({
      key_id: id,
      row_filter: { books: { term: { year: 1999 } } },
    });
    expect(await runAs(own, 'api-keys create dora')).toMatchObject({ code: 1, printed: '' });
    expect(await run(`api-keys revoke dora ${id}`)).toEqual(done);
    expect(await runAs(own, 'me')).toMatchObject({
      code: 1,
      printed: '',
      explained: expect.stringMatching(/^unauthorized: /),
    });
    expect(JSON.parse(await printed('api-keys create dora --json'))).toMatchObject({
      username: 'dora',
      encoded: expect.any(String),
    });
  });
});

test('what cannot be meant is refused before anything is sent', async () => {
  const refused = [
    'users',
    'users list ann',
    'users create',
    'users create zoe --permissions books:read',
    'users create zoe --metadata []',
    'users create zoe --name z',
    'permissions grant ann table:books',
    'permissions grant ann shelf:books:read',
    'permissions revoke ann table:books:read',
    'row-filters set ann books',
    'row-filters set ann books --filter {',
    'row-filters delete ann ..',
    'api-keys create ann --expires-in soon',
    'api-keys create ann --filter {"match_all":{}}',
    'api-keys revoke ann .',
    'subjects list --kind table',
    'roles create editor',
  ];
  for (const words of refused) {
    // Nobody listens there: what is sent fails with another code.
    const told = await runCommand(otherVerbs, [
      'auth',
      ...words.split(' '),
      '--url',
      'http://127.0.0.1:9',
      '--key',
      key,
    ]);
    expect([words, told.code, told.printed]).toEqual([words, 2, '']);
  }
  const unknown = await runCommand(otherVerbs, ['auth', 'me', '--url', 'http://127.0.0.1:9']);
  expect(unknown).toMatchObject({ code: 75, printed: '' });
});

describe('a data directory that no server uses', () => {
  test('has its users, roles and keys managed by who can open it, and shows them to its next server', async () => {
    using place = new TemporaryDirectory();
    const offline = (words: string, ...more: string[]) =>
      runCommand(otherVerbs, ['auth', ...words.split(' '), ...more, '--data-dir', place.path]);
    {
      await using running = await startGuardedServer({ directory: place.path });
      await running.user('ann', [table('books', 'read')]);
      const locked = await offline('users list');
      expect([locked.code === 0, locked.printed]).toEqual([false, '']);
    }
    expect(await offline('users list')).toEqual({ ...done, printed: 'admin\nann\n' });
    expect(await offline('users password ann --password-file', passwordFile('new', 'another one'))).toEqual(done);
    expect(await offline('roles assign ann editor')).toEqual(done);
    expect(await offline('row-filters set ann books --filter', '{"no_such_node":{}}')).toMatchObject({
      code: 1,
      printed: '',
    });
    const made = await offline('api-keys create ann --name offline');
    expect(made).toMatchObject({ code: 0, explained: '' });
    expect(await offline('users delete admin')).toMatchObject({
      code: 1,
      explained: expect.stringMatching(/^last_admin: /),
    });
    expect(await offline('me')).toMatchObject({ code: 2, printed: '' });
    await using again = await startGuardedServer({ directory: place.path });
    const me = await again.as(`Bearer ${made.printed.trim()}`, 'GET', '/auth/v1/me');
    expect(me.body).toMatchObject({ username: 'ann', roles: ['editor'] });
    expect((await again.as(basic('ann', 'another one'), 'GET', '/auth/v1/me')).status).toBe(200);
  });

  test('without users is left to the start that makes the first administrator', async () => {
    using place = new TemporaryDirectory();
    await (await startGuardedServer({ directory: place.path, set: { '--auth': 'false' } }))[Symbol.asyncDispose]();
    const words = ['auth', 'users', 'create', 'ann', '--password-file', passwordFile('first', 'long enough')];
    const told = await runCommand(otherVerbs, [...words, '--data-dir', place.path]);
    expect(told).toMatchObject({ code: 1, printed: '', explained: expect.stringContaining('has no users yet') });
    await using guardedLater = await startGuardedServer({ directory: place.path });
    expect((await guardedLater.asAdmin<object[]>('GET', '/auth/v1/users')).body).toEqual([{ username: 'admin' }]);
  });
});

test('the commands of the guide do what it says', async () => {
  await using fresh = await startGuardedServer();
  const { credential } = await fresh.key('admin');
  const page = readFileSync(join(import.meta.dir, '../../../docs/guide/access.md'), 'utf8');
  const commands = [...page.matchAll(/^sundew (auth .*)$/gm)].map(([, words = '']) => words);
  expect(commands.length).toBeGreaterThan(5);
  for (const command of commands) {
    const words = [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '');
    const at = words.map((word) => (word === 'ann.password' ? passwordFile('guide', 'a password of ann') : word));
    const told = await runCommand(otherVerbs, [...at, '--url', fresh.server.url, '--key', credential.slice(7)]);
    expect([command, told.code, told.explained]).toEqual([command, 0, '']);
  }
});
