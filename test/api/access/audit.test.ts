import { describe, expect, test } from 'bun:test';
import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { otherVerbs } from '../../../src/other-verbs.ts';
import { type GuardedServer, startGuardedServer, table } from '../../support/access.ts';
import { runCommand } from '../../support/command-line.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer } from '../../support/test-server.ts';

interface Line {
  user: string;
  key_id?: string;
  client?: string;
  system_user?: number;
  method: string;
  route: string;
  params?: Record<string, string>;
  tables?: string[];
  status: number;
  suppressed?: number;
}

function linesOf({ server }: GuardedServer): Line[] {
  return linesIn(join(server.directory, 'audit.jsonl'));
}

function linesIn(path: string): Line[] {
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

const short = ({ user, method, route, params, tables, status }: Line) =>
  [user, method, route, params?.table ?? params?.user ?? tables?.join(), status].join(' ');

describe('the audit log of a server', () => {
  test('says who changed what, and who was refused; reads are left out', async () => {
    await using guarded = await startGuardedServer();
    await guarded.user('ann', [table('books', 'read'), table('books', 'write')]);
    const { id, credential } = await guarded.key('ann');
    await guarded.asAdmin('POST', '/db/v1/tables/books', {});
    const batch = { inserts: { a: { secret: 'in the body' } } };
    await guarded.as(credential, 'POST', '/db/v1/tables/books/batch', batch);
    await guarded.as(credential, 'POST', '/db/v1/batch', { tables: { books: { inserts: { b: {} } } } });
    await guarded.as(credential, 'GET', '/db/v1/tables/books/lookup/a');
    await guarded.as(credential, 'POST', '/db/v1/query', { table: 'books' });
    await guarded.as(credential, 'DELETE', '/db/v1/tables/books');
    await guarded.as(undefined, 'GET', '/db/v1/status');
    const lines = linesOf(guarded);
    expect(lines.map(short)).toEqual([
      'admin POST /auth/v1/users/:user ann 201',
      'admin POST /auth/v1/users/:user/api-keys ann 201',
      'admin POST /db/v1/tables/:table books 200',
      'ann POST /db/v1/tables/:table/batch books 201',
      'ann POST /db/v1/batch books 201',
      'ann DELETE /db/v1/tables/:table books 403',
      ' GET /db/v1/status  401',
    ]);
    expect(lines[1]?.params).toEqual({ user: 'ann', key: id });
    expect(lines[3]).toMatchObject({ key_id: id, client: '127.0.0.1' });
    const text = JSON.stringify(lines);
    for (const hidden of ['in the body', credential.slice(40, 60), 'password of ann'])
      expect(text).not.toContain(hidden);
  });

  test('is a fault of the node while it cannot be written', async () => {
    await using guarded = await startGuardedServer();
    const path = join(guarded.server.directory, 'audit.jsonl');
    const health = async () => (await guarded.asAdmin('GET', '/db/v1/status')).body.health;
    rmSync(path);
    mkdirSync(path);
    await guarded.asAdmin('POST', '/db/v1/tables/books', {});
    expect(await health()).toBe('degraded');
    rmSync(path, { recursive: true });
    await guarded.asAdmin('DELETE', '/db/v1/tables/books');
    expect(await health()).toBe('healthy');
    expect(linesOf(guarded)).toMatchObject([{ method: 'DELETE', lost: 1 }]);
  });

  test('is not filled by who gives no right credential, whatever it asks for and however it is refused', async () => {
    await using guarded = await startGuardedServer();
    const { credential } = await guarded.key('admin');
    const send = (headers: Record<string, string>) =>
      guarded.server.send('DELETE', '/db/v1/tables/books', undefined, headers);
    const statuses = new Set<number>();
    for (let count = 0; count < 40; count += 1) {
      statuses.add((await send({ authorization: 'Bearer wrong' })).status);
      statuses.add((await send({ host: 'elsewhere.example.org' })).status);
    }
    expect([...statuses].sort()).toEqual([401, 403, 429]);
    await guarded.as(credential, 'POST', '/db/v1/tables/books', {});
    const lines = linesOf(guarded);
    expect([lines.length, lines.at(-1)]).toMatchObject([62, { user: 'admin', suppressed: 20 }]);
  });

  test('also says who read what where that is asked for', async () => {
    await using guarded = await startGuardedServer({ environment: { SUNDEW__AUDIT__READS: 'true' } });
    await guarded.asAdmin('GET', '/db/v1/tables/nothing');
    expect(linesOf(guarded).map(short)).toEqual(['admin GET /db/v1/tables/:table nothing 404']);
  });

  test('that cannot be written is refused by the start, with what to do', async () => {
    const file = '/proc/audit.jsonl';
    const start = startGuardedServer({ environment: { SUNDEW__AUDIT__FILE: file } });
    await expect(start).rejects.toThrow(expect.objectContaining({ name: 'ConfigError' }));
    await expect(start).rejects.toThrow(/^the audit log \/proc\/audit.jsonl cannot be written: .*"audit.file"/);
  });

  test('is not there without authentication, unless a file is named', async () => {
    await using open = await startTestServer();
    await open.send('POST', '/db/v1/tables/books', {});
    expect(existsSync(join(open.directory, 'audit.jsonl'))).toBe(false);
    await using none = await startGuardedServer({ environment: { SUNDEW__AUDIT__FILE: 'none' } });
    expect(existsSync(join(none.server.directory, 'audit.jsonl'))).toBe(false);
  });
});

describe('commands on a data directory at rest', () => {
  const uid = process.getuid?.();
  const run = (directory: string, words: readonly string[], variables: Record<string, string> = {}) =>
    runCommand(otherVerbs, [...words, '--data-dir', directory], variables);
  const offline = ({ system_user, ...line }: Line) => [system_user, short(line)];
  const rest = async (directory: string) => {
    const guarded = await startGuardedServer({ directory });
    await guarded.user('ann', []);
    await guarded.server[Symbol.asyncDispose]();
  };

  test('leave their lines beside those of the server', async () => {
    using place = new TemporaryDirectory();
    await rest(place.path);
    const path = join(place.path, 'audit.jsonl');
    rmSync(path);
    expect((await run(place.path, ['keys', 'list'])).code).toBe(0);
    expect(existsSync(path)).toBe(false);
    const made = await run(place.path, ['keys', 'create', '--user', 'ann', '--json']);
    const { key_id, encoded } = JSON.parse(made.printed) as { key_id: string; encoded: string };
    expect((await run(place.path, ['keys', 'revoke', key_id])).code).toBe(0);
    expect((await run(place.path, ['keys', 'revoke', key_id])).code).toBe(1);
    const variables = { SUNDEW_PASSWORD: 'another one of hers' };
    expect((await run(place.path, ['auth', 'users', 'password', 'ann'], variables)).code).toBe(0);
    expect((await run(place.path, ['auth', 'users', 'delete', 'nobody'])).code).toBe(1);
    const lines = linesIn(path);
    expect(lines.map(offline)).toEqual([
      [uid, ' POST /auth/v1/users/:user/api-keys ann 201'],
      [uid, ' DELETE /auth/v1/users/:user/api-keys/:key ann 204'],
      [uid, ' PUT /auth/v1/users/:user/password ann 200'],
      [uid, ' DELETE /auth/v1/users/:user nobody 404'],
    ]);
    expect(lines.slice(0, 2).map(({ params }) => params?.key)).toEqual([key_id, key_id]);
    for (const secret of [encoded, variables.SUNDEW_PASSWORD]) expect(readFileSync(path, 'utf8')).not.toContain(secret);
  });

  test('go by the file of the configuration, or keep none', async () => {
    using place = new TemporaryDirectory();
    await rest(place.path);
    const path = join(place.path, 'audit.jsonl');
    rmSync(path);
    const elsewhere = join(place.path, 'elsewhere.jsonl');
    const create = (file: string) => run(place.path, ['keys', 'create'], { SUNDEW__AUDIT__FILE: file });
    expect((await create('none')).code).toBe(0);
    expect((await create(elsewhere)).code).toBe(0);
    expect(existsSync(path)).toBe(false);
    expect(linesIn(elsewhere)).toHaveLength(1);
    const refused = await create(join(place.path, 'missing/audit.jsonl'));
    expect(refused).toMatchObject({ code: 2, printed: '', explained: expect.stringContaining('cannot be written') });
    expect((await run(place.path, ['keys', 'list'])).printed.trim().split('\n')).toHaveLength(2);
  });

  test.if(process.getuid?.() === 0)('run by root leave the file to the owner of the directory', async () => {
    using place = new TemporaryDirectory();
    await rest(place.path);
    rmSync(join(place.path, 'audit.jsonl'));
    for (const name of ['', 'catalog.db']) chownSync(join(place.path, name), 65_534, 65_534);
    expect((await run(place.path, ['keys', 'create'])).code).toBe(0);
    expect(statSync(join(place.path, 'audit.jsonl')).uid).toBe(65_534);
  });
});
