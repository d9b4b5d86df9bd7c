import { expect, test } from 'bun:test';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { bodyOf, openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const mebibyte = 1024 * 1024;
const clients = 6;
const batchesEach = 12;
const words = 'slow cooked beans with garlic and thyme over rice '.repeat(40);

/**
 * Batches of 200 KB by several clients at once, with room for five of them: how many were taken and
 * refused, how many documents the index read from the feed, because they did not fit into its queue, and are found.
 */
async function writeFast(backlogWaitMs: number) {
  using directory = new TemporaryDirectory();
  const limits = { batchBodyBytesMax: mebibyte / 2, backlogBytesMax: mebibyte, backlogWaitMs };
  const database = await openTestDatabase(directory.path, { limits });
  const { tables, writes, queries, indexes } = database.services;
  const caller = testCaller();
  await tables.create('fast', {}, caller);
  let [taken, refused] = [0, 0];
  const write = async (inserts: object) => {
    try {
      await writes.batch('fast', bodyOf({ inserts }), caller);
      taken += 1;
    } catch (error) {
      expect(error).toBeInstanceOf(ServiceError);
      expect(error).toMatchObject({ code: 'backpressure', retryAfterMs: 250 });
      refused += 1;
    }
  };
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let batch = 0; batch < batchesEach; batch += 1) {
        const keys = Array.from({ length: 100 }, (_, at) => `${client}-${batch}-${at}`);
        await write(Object.fromEntries(keys.map((key) => [key, { text: `${words} ${key}` }])));
      }
    }),
  );
  const [answer = []] = await queries.run('fast', bodyOf({ count: true, wait_for_index_ms: 30_000 }), caller);
  const { ranges } = await indexes.get('fast', 'full_text_index_v0', caller);
  await database.close();
  const readAgain = ranges.reduce((rows, range) => rows + range.backfilledRows, 0);
  return { taken, refused, readAgain, found: JSON.parse(answer.join('')).hits.total.value };
}

test('clients that write as fast as they can are slowed down, not refused, and nothing is read again for them', async () => {
  const all = clients * batchesEach;
  expect(await writeFast(60_000)).toEqual({ taken: all, refused: 0, readAgain: 0, found: all * 100 });
});

test('without a wait they are refused, by an error that says when to come again', async () => {
  const { taken, refused, found } = await writeFast(0);
  expect(refused).toBeGreaterThan(0);
  expect(found).toBe(taken * 100);
});
