import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { BackupRun } from '../../../src/backup/backup-run.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { until } from '../../support/fault/until.ts';
import type { TestServer } from '../../support/test-server.ts';

interface Outcome {
  status: string;
  tables: { name: string; status: string; code?: string; retryable?: boolean }[];
}

const place = new BackupPlace();
const { copy } = BackupRun.prototype;
let server: TestServer;

beforeEach(async () => {
  server = await place.server();
  for (const name of ['kept', 'scratch']) {
    await server.send('POST', `/db/v1/tables/${name}`, { num_shards: 2 });
    await server.send('POST', `/db/v1/tables/${name}/batch`, { inserts: { a: { n: 1 }, z: { n: 2 } } });
  }
});
afterEach(async () => {
  BackupRun.prototype.copy = copy;
  await server[Symbol.asyncDispose]();
});

const backup = async (backup_id: string, more: object = {}) => {
  const body = { backup_id, location: place.location, connection: 'archive', ...more };
  return (await server.send<Outcome>('POST', '/db/v1/backup', body)).body;
};

/** Ends the table `scratch` by a request when a backup is about to copy it. */
function endBeforeCopy(end: () => Promise<unknown>): void {
  BackupRun.prototype.copy = async function (table, caller) {
    if (table.name === 'scratch') {
      void end();
      await until(async () => table.ended !== undefined);
    }
    await copy.call(this, table, caller);
  };
}

const drop = () => server.send('DELETE', '/db/v1/tables/scratch');

describe('a table that is dropped while others are copied', () => {
  test('is missing from a backup of all tables, and so are its files', async () => {
    endBeforeCopy(drop);
    expect(await backup('all')).toMatchObject({ status: 'completed', tables: [{ name: 'kept', status: 'completed' }] });
    expect(place.files('all').map((name) => /table-\d+/.exec(name)?.[0])).toEqual(Array(3).fill('table-0'));
  });

  test('fails a backup that names it', async () => {
    endBeforeCopy(drop);
    const { status, tables } = await backup('named', { table_names: ['kept', 'scratch'] });
    expect(status).toBe('partial');
    expect(tables[1]).toMatchObject({ name: 'scratch', code: 'table_not_found', retryable: false });
    expect(place.files('named')).toEqual([]);
  });
});

test('a table that a restore replaces meanwhile fails the backup, which may be tried again', async () => {
  expect((await backup('first')).status).toBe('completed');
  endBeforeCopy(() => {
    const restore = { backup_id: 'first', location: place.location, connection: 'archive', restore_mode: 'overwrite' };
    return server.send('POST', '/db/v1/tables/scratch/restore', restore);
  });
  const { status, tables } = await backup('second');
  expect(status).toBe('partial');
  expect(tables[1]).toMatchObject({ name: 'scratch', code: 'transaction_conflict', retryable: true });
});
