import { expect, test } from 'bun:test';
import { startGuardedServer, table } from '../../support/access.ts';

function rowsNaming(named: string | undefined, on_delete: string) {
  const column = { type: 'string', ...(named && { references: { table: named, on_delete } }) };
  const properties = { of: column };
  return {
    schema: { storage_mode: 'relational', document_schemas: { row: { schema: { type: 'object', properties } } } },
  };
}

test('rows of hidden tables keep what they name, and neither those tables nor their keys are told', async () => {
  await using guarded = await startGuardedServer();
  await guarded.asAdmin('POST', '/db/v1/tables/top', rowsNaming(undefined, ''));
  await guarded.asAdmin('POST', '/db/v1/tables/middle', rowsNaming('top', 'cascade'));
  await guarded.asAdmin('POST', '/db/v1/tables/leaf', rowsNaming('middle', 'restrict'));
  await guarded.asAdmin('POST', '/db/v1/tables/beside', rowsNaming('top', 'restrict'));
  const rows = { top: { a: {}, b: {} }, middle: { hush: { of: 'a' } }, leaf: { quiet: { of: 'hush' } } };
  for (const [name, inserts] of Object.entries({ ...rows, beside: { still: { of: 'b' } } })) {
    expect((await guarded.asAdmin('POST', `/db/v1/tables/${name}/batch`, { inserts })).status).toBe(201);
  }
  const owner = await guarded.user('owner', [table('top', 'admin')]);
  const told = 'rows that you may not see name what this would delete; ask an administrator';
  for (const deletes of [['a'], ['b']]) {
    const { status, body } = await guarded.as(owner, 'POST', '/db/v1/tables/top/batch', { deletes });
    expect([status, body.code, body.error]).toEqual([409, 'constraint_violation', told]);
  }
  const dropped = await guarded.as(owner, 'DELETE', '/db/v1/tables/top');
  expect([dropped.status, dropped.body.error]).toEqual([409, told]);
  const whole = await guarded.asAdmin('POST', '/db/v1/tables/top/batch', { deletes: ['a'] });
  expect(JSON.stringify(whole.body)).toContain('the row \\"hush\\" of \\"middle\\" is refused');
});
