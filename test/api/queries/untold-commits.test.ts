import { afterAll, expect, test } from 'bun:test';
import { until } from '../../support/fault/until.ts';
import { HeldWriter } from '../../support/held-writer.ts';
import { bodyOf, openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const directory = new TemporaryDirectory();
const writer = new HeldWriter();
const database = await openTestDatabase(directory.path, { writer });
afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

test('after a lookup has seen a commit that the main thread is yet to be told of, no search calls an answer without it exact', async () => {
  const { tables, writes, documents, queries, graphs } = database.services;
  const caller = testCaller();
  const query = async (body: object) => {
    const [answer = []] = await queries.run('t', bodyOf(body), caller);
    const { hits } = JSON.parse(answer.join(''));
    return { ...hits.total, keys: hits.hits?.map(({ _id }: { _id: string }) => _id) };
  };
  const edges = async () => JSON.parse(await graphs.edges('t', 'g', { key: 'kept', direction: 'in' }, caller));
  await tables.create('t', { indexes: { g: { type: 'graph' } } }, caller);
  const inserts = { gone: { text: 'amber' }, kept: { text: 'amber' } };
  await writes.batch('t', bodyOf({ inserts, sync_level: 'full_index' }), caller);

  writer.hold();
  const change = {
    inserts: { new: { text: 'amber', _edges: { g: { to: [{ target: 'kept' }] } } } },
    deletes: ['gone'],
  };
  const written = writes.batch('t', bodyOf(change), caller);
  await until(async () => {
    const found = await Promise.try(() => documents.lookup('t', 'new', undefined, caller)).catch(() => undefined);
    return found !== undefined;
  });
  const amber = { full_text_search: { match: 'amber', field: 'text' } };
  expect(await query(amber)).toEqual({ value: 1, relation: 'gte', keys: ['kept'] });
  expect(await query({ count: true })).toMatchObject({ relation: 'gte' });
  expect(await edges()).toMatchObject({ count: 0, partial: 'indexing' });

  writer.release();
  await written;
  expect(await query({ count: true })).toMatchObject({ value: 2, relation: 'exact' });
  expect(await edges()).toMatchObject({ count: 1 });
});
