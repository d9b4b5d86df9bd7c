import { setDefaultTimeout } from 'bun:test';
import { LocalRangeLog } from '../../src/replication/local-range-log.ts';
import { createTable, documentOf, openTestStorage, temporaryDirectory } from '../storage/storage-fixture.ts';
import { rangeLogContract } from './range-log.ts';

setDefaultTimeout(120_000);

rangeLogContract(async () => {
  const directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const table = await createTable(storage, 'things', 3);
  const rangeIds = table.ranges.map(({ rangeId }) => rangeId);
  const ranges = new Map(await Promise.all(rangeIds.map(async (id) => [id, await storage.openRange(id)] as const)));
  return {
    log: new LocalRangeLog(storage),
    rangeIds,
    document: (rangeId, key) => documentOf(ranges.get(rangeId)?.documents.get(key)?.body),
    async [Symbol.asyncDispose]() {
      await storage.close();
      directory[Symbol.dispose]();
    },
  };
});
