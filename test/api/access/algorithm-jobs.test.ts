import { expect, test } from 'bun:test';
import { startGuardedServer, table } from '../../support/access.ts';

test('who may only read a table stops the algorithms that they have asked for, and no others', async () => {
  await using guarded = await startGuardedServer();
  await guarded.asAdmin('POST', '/db/v1/tables/t', { indexes: { g: { type: 'graph' } } });
  const [ann, ben] = [await guarded.user('ann', [table('t', 'read')]), await guarded.user('ben', [table('t', 'read')])];
  const path = '/db/v1/tables/t/indexes/g/algorithms';
  const { status, body } = await guarded.as(ann, 'POST', path, { algorithm: 'degree' });
  expect(status).toBe(202);
  const job = `${path}/${body.job_id}`;
  expect((await guarded.as(ben, 'GET', job)).status).toBe(200);
  expect(await guarded.as(ben, 'DELETE', job)).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  expect((await guarded.as(ann, 'DELETE', job)).status).toBe(200);
  expect((await guarded.asAdmin('DELETE', job)).status).toBe(200);
});
