import { expect, test } from 'bun:test';
import type { RestoreJobBody } from '../../../src/protocol/database/restores.ts';
import { startGuardedServer, table } from '../../support/access.ts';
import { BackupPlace } from '../../support/backup-place.ts';

interface Jobs {
  jobs: RestoreJobBody[];
}

test('a restore is there for those who could ask for it, and for no other credential of its user', async () => {
  using place = new BackupPlace();
  await using guarded = await startGuardedServer({ file: place.file });
  for (const name of ['books', 'plates']) await guarded.asAdmin('POST', `/db/v1/tables/${name}`, {});
  const backup = { backup_id: 'b', location: place.location, table_names: ['books'] };
  expect((await guarded.asAdmin('POST', '/db/v1/backup', backup)).body).toMatchObject({ status: 'completed' });
  const ann = await guarded.user('ann', [table('books', 'admin'), table('plates', 'admin')]);
  const ben = await guarded.user('ben', [table('books', 'admin')]);
  const other = await guarded.user('other', [table('plates', 'admin')]);
  const narrow = await guarded.key('ann', { permissions: [table('plates', 'admin')] });
  const { credential: adminKey } = await guarded.key('admin', { permissions: [] });

  // The same key of another user is another request.
  const path = '/db/v1/tables/books/restore';
  const request = { backup_id: 'b', location: place.location, restore_mode: 'skip_if_exists' };
  const ask = async (by: string) =>
    (await guarded.as<RestoreJobBody>(by, 'POST', path, request, { 'idempotency-key': 'once' })).body.job_id;
  const [ofAnn, again, ofBen] = [await ask(ann), await ask(ann), await ask(ben)];
  expect([again === ofAnn, ofBen === ofAnn]).toEqual([true, false]);
  const ofAll = (
    await guarded.asAdmin<RestoreJobBody>('POST', '/db/v1/restore', { ...request, table_names: ['books'] })
  ).body.job_id;

  const seen = async (by: string) =>
    (await guarded.as<Jobs>(by, 'GET', '/db/v1/restore/jobs')).body.jobs.map(({ job_id }) => job_id);
  expect([await seen(ann), await seen(ben)]).toEqual([
    [ofBen, ofAnn],
    [ofBen, ofAnn],
  ]);
  expect((await guarded.asAdmin<Jobs>('GET', '/db/v1/restore/jobs')).body.jobs).toHaveLength(3);
  for (const by of [other, narrow.credential, adminKey]) {
    expect(await seen(by)).toEqual([]);
    for (const method of ['GET', 'DELETE']) {
      for (const job of [ofAnn, ofAll]) {
        const { status, body } = await guarded.as(by, method, `/db/v1/restore/jobs/${job}`);
        expect([status, body.code]).toEqual([404, 'job_not_found']);
      }
    }
  }

  await guarded.asAdmin('DELETE', '/auth/v1/users/ann/permissions?resource=books&resourceType=table');
  await guarded.asAdmin('PUT', '/auth/v1/users/ben/row-filters/books', { match_all: {} });
  expect([await seen(ann), await seen(ben)]).toEqual([[], []]);
});
