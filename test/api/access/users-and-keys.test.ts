import { describe, expect, test } from 'bun:test';
import { adminPassword, basic, startGuardedServer, table } from '../../support/access.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const lookup = '/db/v1/tables/books/lookup/a';

describe('A01: credentials', () => {
  test('Bearer, ApiKey and Basic are taken, in any case of the scheme; everything else is 401', async () => {
    await using guarded = await startGuardedServer();
    const { credential } = await guarded.key('admin');
    const encoded = credential.slice('Bearer '.length);
    const [id = '', secret = ''] = Buffer.from(encoded, 'base64').toString().split(':');
    const good = [credential, `ApiKey ${encoded}`, `bearer ${encoded}`, basic('admin', adminPassword)];
    for (const each of good)
      expect([each, (await guarded.as(each, 'GET', '/db/v1/status')).status]).toEqual([each, 200]);
    const bad = [
      undefined,
      '',
      'Bearer',
      'Bearer not base64!',
      `Bearer ${Buffer.from(id).toString('base64')}`,
      `Bearer ${Buffer.from(`${id}:${secret.slice(1)}`).toString('base64')}`,
      `Bearer ${Buffer.from(`${id.toLowerCase()}x:${secret}`).toString('base64')}`,
      `Digest ${encoded}`,
      encoded,
      basic('admin', 'wrong password'),
      basic('nobody', adminPassword),
      `Bearer ${'A'.repeat(5_000)}`,
    ];
    for (const each of bad) {
      const answer = await guarded.as(each, 'GET', '/db/v1/status');
      expect([each, answer.status, answer.body.code]).toEqual([each, 401, 'unauthorized']);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Basic realm="[^"]+", .*Bearer realm="[^"]+"$/);
    }
  });

  test('each of two keys of a user is told which one it is, at every request, and a password is told of none', async () => {
    await using guarded = await startGuardedServer();
    const keys = [await guarded.key('admin'), await guarded.key('admin')];
    for (const { id, credential } of [...keys, ...keys]) {
      const me = await guarded.as(credential, 'GET', '/auth/v1/me');
      expect(me.body).toMatchObject({ username: 'admin', key_id: id });
    }
    const me = await guarded.as(basic('admin', adminPassword), 'GET', '/auth/v1/me');
    expect(me.body).not.toHaveProperty('key_id');
  });

  test('a credential in the query string is never read', async () => {
    await using guarded = await startGuardedServer();
    const { credential } = await guarded.key('admin');
    const encoded = encodeURIComponent(credential.slice(7));
    for (const name of ['api_key', 'access_token', 'authorization', 'token', 'key']) {
      expect((await guarded.as(undefined, 'GET', `/db/v1/status?${name}=${encoded}`)).status).toBe(401);
    }
  });

  test('an unknown body is not read before its sender is known', async () => {
    await using guarded = await startGuardedServer();
    const answer = await guarded.as(undefined, 'POST', '/db/v1/tables/books/batch', '{"inserts": not json');
    expect(answer.body.code).toBe('unauthorized');
  });

  test('the inference plane answers 401 in its own shape', async () => {
    await using guarded = await startGuardedServer();
    const answer = await guarded.as(undefined, 'GET', '/ai/v1/models');
    expect(answer.status).toBe(401);
    expect(answer.body).toMatchObject({ reason: 'unauthorized', retryable: false });
  });

  test('an expired key, a revoked key and a key of a removed user are refused from the next request on', async () => {
    const clock = new FakeClock();
    await using guarded = await startGuardedServer({ clock });
    await guarded.user('ann', [table('books', 'read')]);
    const expiring = await guarded.key('ann', { expires_in: '1h' });
    const revoked = await guarded.key('ann');
    const orphan = await guarded.key('ann');
    const statusOf = async ({ credential }: { credential: string }) =>
      (await guarded.as(credential, 'GET', '/auth/v1/me')).status;
    for (const key of [expiring, revoked, orphan]) expect(await statusOf(key)).toBe(200);
    clock.jump(3_600_000);
    expect(await statusOf(expiring)).toBe(401);
    expect((await guarded.asAdmin('DELETE', `/auth/v1/users/ann/api-keys/${revoked.id}`)).status).toBe(204);
    expect(await statusOf(revoked)).toBe(401);
    expect((await guarded.asAdmin('DELETE', `/auth/v1/users/ann/api-keys/${revoked.id}`)).body.code).toBe(
      'api_key_not_found',
    );
    expect((await guarded.asAdmin('DELETE', '/auth/v1/users/ann')).status).toBe(204);
    expect(await statusOf(orphan)).toBe(401);
    expect((await guarded.as(basic('ann', 'password of ann'), 'GET', '/auth/v1/me')).status).toBe(401);
  });

  test('a changed password holds at once, though the old one was just verified', async () => {
    await using guarded = await startGuardedServer();
    const old = await guarded.user('ann', []);
    expect((await guarded.as(old, 'GET', '/auth/v1/me')).status).toBe(200);
    const changed = await guarded.as(old, 'PUT', '/auth/v1/users/ann/password', { new_password: 'another one' });
    expect(changed.status).toBe(200);
    expect((await guarded.as(old, 'GET', '/auth/v1/me')).status).toBe(401);
    expect((await guarded.as(basic('ann', 'another one'), 'GET', '/auth/v1/me')).status).toBe(200);
  });

  test('wrong credentials of one client are throttled, before any hash, and right keys still pass', async () => {
    await using guarded = await startGuardedServer();
    const { credential } = await guarded.key('admin');
    const wrong = `Bearer ${Buffer.from('nobody:nothing').toString('base64')}`;
    const statuses: number[] = [];
    for (let i = 0; i < 40; i += 1) statuses.push((await guarded.as(wrong, 'GET', '/db/v1/status')).status);
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
    expect(statuses.indexOf(429)).toBeGreaterThanOrEqual(10);
    const refused = await guarded.as(basic('admin', 'wrong password'), 'GET', '/db/v1/status');
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_attempts']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await guarded.as(credential, 'GET', '/db/v1/status')).status).toBe(200);
  });
});

describe('users', () => {
  test('are made, shown without their hash, listed and removed', async () => {
    await using guarded = await startGuardedServer();
    await guarded.user('ann', [table('books', 'read')], { team: 'red' });
    const shown = await guarded.asAdmin('GET', '/auth/v1/users/ann');
    expect(shown.body).toEqual({ username: 'ann', metadata: { team: 'red' }, created_at: expect.any(String) });
    expect((await guarded.asAdmin('GET', '/auth/v1/users')).body as unknown).toEqual([
      { username: 'admin' },
      { username: 'ann' },
    ]);
    const again = await guarded.asAdmin('POST', '/auth/v1/users/ann', { password: 'long enough' });
    expect([again.status, again.body.code]).toEqual([409, 'already_exists']);
    for (const password of ['short', 'x'.repeat(257)]) {
      expect((await guarded.asAdmin('POST', '/auth/v1/users/bob', { password })).status).toBe(400);
    }
    expect((await guarded.asAdmin('POST', '/auth/v1/users/a%3Ab', { password: 'long enough' })).body.code).toBe(
      'invalid_name',
    );
    expect((await guarded.asAdmin('GET', '/auth/v1/users/bob')).body.code).toBe('user_not_found');
  });

  test('who they are, what they may do and which roles they have is told to themselves', async () => {
    await using guarded = await startGuardedServer();
    const ann = await guarded.user('ann', [table('books', 'read')], { team: 'red' });
    await guarded.asAdmin('POST', '/auth/v1/users/ann/roles', { role: 'editor' });
    await guarded.asAdmin('POST', '/auth/v1/subjects/role:editor/permissions', table('books', 'write'));
    expect((await guarded.as(ann, 'GET', '/auth/v1/me')).body).toEqual({
      username: 'ann',
      permissions: [table('books', 'read'), table('books', 'write')],
      roles: ['editor'],
      metadata: { team: 'red' },
    });
    expect((await guarded.asAdmin('GET', '/auth/v1/users/ann/permissions')).body as unknown).toEqual([
      table('books', 'read'),
    ]);
  });

  test('manage their own password and keys with their password, and nobody else', async () => {
    await using guarded = await startGuardedServer();
    const ann = await guarded.user('ann', [table('books', 'read')]);
    await guarded.user('bob', []);
    const made = await guarded.as(ann, 'POST', '/auth/v1/users/ann/api-keys', { name: 'mine' });
    expect(made.status).toBe(201);
    const key = `Bearer ${made.body.encoded}`;
    expect((await guarded.as(key, 'GET', '/auth/v1/me')).body).toMatchObject({
      username: 'ann',
      key_id: made.body.key_id,
    });
    for (const credential of [ann, key]) {
      const others = await guarded.as(credential, 'POST', '/auth/v1/users/bob/api-keys', { name: 'x' });
      expect([others.status, others.body.code]).toEqual([403, 'forbidden']);
      expect((await guarded.as(credential, 'POST', '/auth/v1/users/ann/permissions', table('x', 'read'))).status).toBe(
        403,
      );
    }
    expect((await guarded.as(key, 'POST', '/auth/v1/users/ann/api-keys', { name: 'larger' })).status).toBe(403);
    expect((await guarded.as(key, 'PUT', '/auth/v1/users/ann/password', { new_password: 'long enough' })).status).toBe(
      403,
    );
    expect((await guarded.as(ann, 'GET', '/auth/v1/users')).body as unknown).toEqual([{ username: 'ann' }]);
  });

  test('nobody gives away, or takes over, more than it has', async () => {
    await using guarded = await startGuardedServer();
    const lead = await guarded.user('lead', [
      { resource: '*', resource_type: 'user', type: 'admin' },
      table('books', 'admin'),
    ]);
    const make = (initial_policies: object[]) =>
      guarded.as(lead, 'POST', `/auth/v1/users/u${initial_policies.length}`, {
        password: 'long enough',
        initial_policies,
      });
    expect((await make([table('books', 'read')])).status).toBe(201);
    expect((await make([table('books', 'read'), table('other', 'read')])).status).toBe(403);
    expect((await guarded.as(lead, 'POST', '/auth/v1/users/u1/permissions', table('other', 'read'))).status).toBe(403);
    expect(
      (await guarded.as(lead, 'PUT', '/auth/v1/users/admin/password', { new_password: 'long enough' })).status,
    ).toBe(403);
    expect((await guarded.as(lead, 'POST', '/auth/v1/users/admin/api-keys', { name: 'x' })).status).toBe(403);
    expect((await guarded.as(lead, 'DELETE', '/auth/v1/users/admin')).status).toBe(403);
    expect((await guarded.as(lead, 'DELETE', '/auth/v1/users/u1')).status).toBe(204);
  });

  test('the last administrator stays, whichever way it would go', async () => {
    await using guarded = await startGuardedServer();
    const global = { resource: '*', resource_type: '*', type: 'admin' };
    const ways: [string, string, unknown?][] = [
      ['DELETE', '/auth/v1/users/admin'],
      ['DELETE', '/auth/v1/users/admin/permissions?resource=*&resourceType=*'],
      ['PUT', '/auth/v1/users/admin/row-filters/books', { match_all: {} }],
      ['POST', '/auth/v1/users/admin/roles', { role: 'filtered' }],
      ['POST', '/auth/v1/users/admin/roles', { role: 'outer' }],
    ];
    // A role narrows whom it is given to where it has a row filter, also through another role.
    await guarded.asAdmin('PUT', '/auth/v1/subjects/role:filtered/row-filters/books', { match_all: {} });
    await guarded.asAdmin('POST', '/auth/v1/subjects/role:outer/roles', { role: 'filtered' });
    for (const [method, path, body] of ways) {
      const answer = await guarded.asAdmin(method, path, body);
      expect([path, answer.status, answer.body.code]).toEqual([path, 409, 'last_admin']);
    }
    await guarded.user('second', [global as never]);
    expect((await guarded.asAdmin('DELETE', '/auth/v1/users/admin')).status).toBe(204);
    expect((await guarded.asAdmin('GET', '/auth/v1/me')).status).toBe(401);
  });
});

describe('keys', () => {
  test('have no more than their user, also after the user loses a grant', async () => {
    await using guarded = await startGuardedServer();
    await guarded.asAdmin('POST', '/db/v1/tables/books', {});
    await guarded.asAdmin('POST', '/db/v1/tables/books/batch', { inserts: { a: { n: 1 } } });
    await guarded.user('ann', [table('books', 'write'), table('books', 'read')]);
    const more = await guarded.asAdmin('POST', '/auth/v1/users/ann/api-keys', {
      name: 'more',
      permissions: [table('books', 'admin')],
    });
    expect([more.status, more.body.code]).toEqual([403, 'forbidden']);
    const reader = await guarded.key('ann', { permissions: [table('books', 'read')] });
    const whole = await guarded.key('ann');
    const batch = { inserts: { b: { n: 2 } } };
    const write = async ({ credential }: { credential: string }) =>
      (await guarded.as(credential, 'POST', '/db/v1/tables/books/batch', batch)).status;
    const read = async ({ credential }: { credential: string }) => (await guarded.as(credential, 'GET', lookup)).status;
    expect([await read(reader), await write(reader), await write(whole)]).toEqual([200, 403, 201]);
    const take = '/auth/v1/users/ann/permissions?resource=books&resourceType=table';
    expect((await guarded.asAdmin('DELETE', take)).status).toBe(204);
    expect([await read(reader), await read(whole), await write(whole)]).toEqual([404, 404, 404]);
  });

  test('lose a grant by either spelling of its type, and by two that agree', async () => {
    await using guarded = await startGuardedServer();
    const path = '/auth/v1/users/ann/permissions';
    await guarded.user('ann', [table('a', 'read'), table('b', 'read'), table('c', 'read')]);
    const take = async (query: string) => (await guarded.asAdmin('DELETE', `${path}?resource=${query}`)).status;
    expect(await take('a&resource_type=table')).toBe(204);
    expect(await take('b&resourceType=table&resource_type=table')).toBe(204);
    expect([await take('c'), await take('c&resourceType=table&resource_type=user')]).toEqual([400, 400]);
    expect((await guarded.asAdmin('GET', path)).body as unknown).toEqual([table('c', 'read')]);
  });

  test('are listed without their secrets', async () => {
    await using guarded = await startGuardedServer();
    await guarded.user('ann', [table('books', 'read')]);
    const { credential } = await guarded.key('ann', {
      name: 'ci',
      expires_in: '720h',
      permissions: [table('books', 'read')],
      row_filter: { books: { term: { team: 'red' } } },
    });
    const listed = await guarded.asAdmin<Record<string, unknown>[]>('GET', '/auth/v1/users/ann/api-keys');
    expect(listed.body).toEqual([
      {
        key_id: expect.stringMatching(/^[A-Za-z0-9]{20}$/),
        name: 'ci',
        username: 'ann',
        permissions: [table('books', 'read')],
        row_filter: { books: { term: { team: 'red' } } },
        created_at: expect.any(String),
        expires_at: expect.any(String),
      },
    ]);
    const secret = Buffer.from(credential.slice(7), 'base64').toString().split(':')[1] ?? '';
    expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const { logLines } = guarded.server;
    expect(JSON.stringify([listed.body, logLines])).not.toContain(secret);
    for (const expires_in of ['soon', '0s', '-1h', '200000d']) {
      const answer = await guarded.asAdmin('POST', '/auth/v1/users/ann/api-keys', { name: 'x', expires_in });
      expect([expires_in, answer.status]).toEqual([expires_in, 400]);
    }
  });
});

describe('row filters of subjects', () => {
  test('are set, shown and removed, and refused when no read could obey them', async () => {
    await using guarded = await startGuardedServer();
    await guarded.user('ann', []);
    const filter = { term: { team: { $auth: 'metadata.team' } } };
    for (const base of ['/auth/v1/users/ann', '/auth/v1/subjects/role:editor', '/auth/v1/subjects/ann']) {
      const path = `${base}/row-filters/books`;
      expect((await guarded.asAdmin('PUT', path, filter)).body).toEqual({ table: 'books', filter });
      expect((await guarded.asAdmin('GET', path)).body).toEqual({ table: 'books', filter });
      expect((await guarded.asAdmin('GET', `${base}/row-filters`)).body as unknown).toEqual([
        { table: 'books', filter },
      ]);
      expect((await guarded.asAdmin('DELETE', path)).status).toBe(204);
      expect((await guarded.asAdmin('GET', path)).body.code).toBe('row_filter_not_found');
    }
    const bad = [
      { nonsense: 1 },
      { term: { team: { $auth: 'password' } } },
      { term: { team: { $auth: 'username', x: 1 } } },
      // The engine alone can tell these.
      { regexp: { team: '(red' } },
      { bool: { must_not: [{ query_string: { query: 'team:/re[d/' } }] } },
      { bool: { must: [{ term: { team: { $auth: 'username' } } }, { regexp: { team: 'a{2,1}' } }] } },
      { cidr: 'nowhere', field: 'address' },
    ];
    for (const each of bad) {
      const answers = [
        await guarded.asAdmin('PUT', '/auth/v1/users/ann/row-filters/books', each),
        await guarded.asAdmin('POST', '/auth/v1/users/ann/api-keys', { name: 'bad', row_filter: { books: each } }),
      ];
      for (const { status, body } of answers) expect([each, status, body.code]).toEqual([each, 400, 'invalid_query']);
    }
    expect((await guarded.asAdmin('GET', '/auth/v1/users/ann/api-keys')).body as unknown).toEqual([]);
    const fine = { bool: { must: [{ regexp: { team: 're[dD]+' } }, { regexp: { owner: { $auth: 'username' } } }] } };
    expect((await guarded.asAdmin('PUT', '/auth/v1/subjects/role:red/row-filters/books', fine)).status).toBe(200);
    // No table has such a name, so the filter would protect nothing.
    for (const name of ['books-*', 'two words', '_books', 'a/b']) {
      const row_filter = { [name]: filter };
      const answers = [
        await guarded.asAdmin('PUT', `/auth/v1/users/ann/row-filters/${encodeURIComponent(name)}`, filter),
        await guarded.asAdmin('POST', '/auth/v1/users/ann/api-keys', { name: 'filtered', row_filter }),
      ];
      for (const { status, body } of answers) expect([name, status, body.code]).toEqual([name, 400, 'invalid_name']);
    }
    expect((await guarded.asAdmin('GET', '/auth/v1/users/ann/row-filters')).body as unknown).toEqual([]);
    await guarded.asAdmin('PUT', '/auth/v1/subjects/group:staff/row-filters/*', { match_all: {} });
    expect((await guarded.asAdmin('GET', '/auth/v1/subjects?kind=group')).body as unknown).toEqual([
      { subject: 'group:staff', kind: 'group' },
    ]);
  });
});

describe('without authentication', () => {
  test('there is nothing to manage, and nobody is asked', async () => {
    const { startTestServer } = await import('../../support/test-server.ts');
    await using server = await startTestServer();
    const answer = await server.send('GET', '/auth/v1/me');
    expect([answer.status, answer.body.code]).toEqual([503, 'auth_disabled']);
    expect((await server.send('GET', '/db/v1/status')).body).toMatchObject({ auth_enabled: false });
  });
});
