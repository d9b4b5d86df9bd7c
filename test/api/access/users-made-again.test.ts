import { expect, test } from 'bun:test';
import type { RestoreJobBody } from '../../../src/protocol/database/restores.ts';
import { type GuardedServer, type Permission, startGuardedServer, table } from '../../support/access.ts';
import { BackupPlace } from '../../support/backup-place.ts';

const grants = [table('t', 'admin')];

async function replace(guarded: GuardedServer, name: string, given: readonly Permission[] = grants): Promise<string> {
  expect((await guarded.asAdmin('DELETE', `/auth/v1/users/${name}`)).status).toBe(204);
  return guarded.user(name, given);
}

test('who is made under the name of a removed user has none of its transactions', async () => {
  await using guarded = await startGuardedServer();
  await guarded.asAdmin('POST', '/db/v1/tables/t', {});
  const before = await guarded.user('ann', grants);
  const { body } = await guarded.as(before, 'POST', '/db/v1/transactions/begin', {});
  const id = String(body.transaction_id);
  const stage = { tables: { t: { inserts: { secret: { of: 'the first' } } } } };
  expect((await guarded.as(before, 'POST', `/db/v1/transactions/${id}/stage`, stage)).status).toBe(200);
  const after = await replace(guarded, 'ann');
  expect((await guarded.as(after, 'GET', '/db/v1/transactions')).body).toMatchObject({ sessions: [] });
  for (const [method, path] of [
    ['GET', `/db/v1/transactions/${id}`],
    ['POST', `/db/v1/transactions/${id}/commit`],
  ] as const) {
    expect((await guarded.as(after, method, path)).body.code).toBe('transaction_not_found');
  }
});

test('who is made under the name of a removed user gets no answer to what that one asked for', async () => {
  using place = new BackupPlace();
  await using guarded = await startGuardedServer({ file: place.file });
  await guarded.asAdmin('POST', '/db/v1/tables/t', {});
  const before = await guarded.user('ann', grants);
  const once = { 'idempotency-key': 'once' };
  const write = (by: string) =>
    guarded.as(by, 'POST', '/db/v1/tables/t/batch', { transforms: [increment], sync_level: 'write' }, once);
  const increment = { key: 'a', operations: [{ op: '$inc', path: '$.n', value: 1 }], upsert: true };
  expect([(await write(before)).status, (await write(before)).status]).toEqual([201, 201]);
  const backup = { backup_id: 'b', location: place.location, table_names: ['t'] };
  expect((await guarded.asAdmin('POST', '/db/v1/backup', backup)).body).toMatchObject({ status: 'completed' });
  const request = { backup_id: 'b', location: place.location, restore_mode: 'skip_if_exists' };
  const restore = async (by: string) =>
    (await guarded.as<RestoreJobBody>(by, 'POST', '/db/v1/tables/t/restore', request, once)).body.job_id;
  const job = await restore(before);

  const after = await replace(guarded, 'ann');
  expect((await write(after)).status).toBe(201);
  expect((await guarded.as(after, 'GET', '/db/v1/tables/t/lookup/a')).body).toEqual({ n: 2 });
  expect(await restore(after)).not.toBe(job);
});

test('who is made under the name of a removed user does not stop the algorithms of that one', async () => {
  await using guarded = await startGuardedServer();
  await guarded.asAdmin('POST', '/db/v1/tables/t', { indexes: { g: { type: 'graph' } } });
  const reads = [table('t', 'read')];
  const before = await guarded.user('ann', reads);
  const path = '/db/v1/tables/t/indexes/g/algorithms';
  const { body } = await guarded.as(before, 'POST', path, { algorithm: 'degree' });
  const after = await replace(guarded, 'ann', reads);
  expect((await guarded.as(after, 'DELETE', `${path}/${body.job_id}`)).body.code).toBe('forbidden');
});

test('what others may read and write of a user ends with the user', async () => {
  await using guarded = await startGuardedServer();
  const of = (type: Permission['type']): Permission => ({ resource: 'ann', resource_type: 'user', type });
  await guarded.user('ann', []);
  const desk = await guarded.user('desk', [of('read'), of('write')]);
  const maker = await guarded.user('maker', [of('admin')]);
  expect((await guarded.as(desk, 'GET', '/auth/v1/users/ann')).status).toBe(200);
  await replace(guarded, 'ann', []);
  expect((await guarded.as(desk, 'GET', '/auth/v1/users/ann')).body.code).toBe('forbidden');
  const password = { new_password: 'another password' };
  expect((await guarded.as(desk, 'PUT', '/auth/v1/users/ann/password', password)).body.code).toBe('forbidden');
  expect((await guarded.as(maker, 'PUT', '/auth/v1/users/ann/password', password)).status).toBe(200);
});
