import { describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type GuardedServer, startGuardedServer, table } from '../../support/access.ts';
import { startTestServer } from '../../support/test-server.ts';

interface Line {
  user: string;
  key_id?: string;
  client: string;
  method: string;
  route: string;
  params?: Record<string, string>;
  tables?: string[];
  status: number;
  suppressed?: number;
}

function linesOf({ server }: GuardedServer): Line[] {
  const text = readFileSync(join(server.directory, 'audit.jsonl'), 'utf8');
  return text
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
