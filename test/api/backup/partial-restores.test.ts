import { afterEach, describe, expect, mock, spyOn, test } from 'bun:test';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TableService } from '../../../src/tables/table-service.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { endOfRestore, restore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

const tables = ['bad', 'good'];
const request = (place: BackupPlace) => ({ backup_id: 'b', location: place.location, restore_mode: 'overwrite' });

afterEach(() => mock.restore());

async function write(server: TestServer, generation: string): Promise<void> {
  for (const table of tables) {
    const inserts = { '0': { generation }, z: { generation } };
    expect((await server.send('POST', `/db/v1/tables/${table}/batch`, { inserts })).status).toBe(201);
  }
}

async function generationOf(server: TestServer, table: string): Promise<unknown[]> {
  const found = ['0', 'z'].map((key) => server.send('GET', `/db/v1/tables/${table}/lookup/${key}`));
  return (await Promise.all(found)).map(({ body }) => (body as { generation?: string }).generation);
}

/** A server whose tables have changed since the backup `b` of them. */
async function prepared(place: BackupPlace, format: string): Promise<TestServer> {
  const server = await place.server();
  for (const table of tables) await server.send('POST', `/db/v1/tables/${table}`, { num_shards: 2 });
  await write(server, 'first');
  const made = await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location, format });
  expect(made.body).toMatchObject({ status: 'completed' });
  await write(server, 'second');
  return server;
}

const faults: [string, (path: string) => void][] = [
  ['is missing', (path) => rmSync(path)],
  ['has a flipped bit', (path) => writeFileSync(path, flipped(readFileSync(path)))],
  ['is cut', (path) => writeFileSync(path, readFileSync(path).subarray(0, -1))],
];

function flipped(bytes: Buffer): Buffer {
  const at = Math.floor(bytes.byteLength / 2);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at);
  return bytes;
}

describe.each(['portable', 'native'])('B05: a restore of two tables of the format "%s"', (format) => {
  test.each(faults)(
    'of which a payload of one %s leaves that one as it was, and brings the other',
    async (_, spoil) => {
      using place = new BackupPlace();
      await using server = await prepared(place, format);
      // The last range: the one before it has been loaded by then.
      const payload = place.files('b').find((name) => {
        const isOf = format === 'native' ? '-image-0.zst' : '-0.ndjson.zst';
        return name.includes('table-0-range-1') && name.endsWith(isOf);
      });
      spoil(String(payload));
      const job = await restore(server, request(place));
      expect(job).toMatchObject({
        phase: 'failed',
        published_table_count: 1,
        completed_table_count: 2,
        result: {
          status: 'partial',
          committed_table_count: 1,
          failed_table_count: 1,
          failure_details: [{ table_name: 'bad', error: expect.stringContaining('backup_corrupted') }],
        },
      });
      expect(await generationOf(server, 'bad')).toEqual(['second', 'second']);
      expect(await generationOf(server, 'good')).toEqual(['first', 'first']);
      const copies = readdirSync(join(server.directory, 'tmp')).filter((name) => name.startsWith('restored-'));
      expect(copies).toEqual([]);
      await write(server, 'third');
      expect(await generationOf(server, 'bad')).toEqual(['third', 'third']);
    },
  );
});

test.each([
  ['fail_if_exists', 'failed'],
  ['skip_if_exists', 'succeeded'],
])(
  'B10: a table that is made while it is restored with "%s" stays: nothing is published over it',
  async (mode, phase) => {
    using place = new BackupPlace();
    await using server = await prepared(place, 'portable');
    await server.send('DELETE', '/db/v1/tables/bad');
    const publish = TableService.prototype.publish;
    spyOn(TableService.prototype, 'publish').mockImplementationOnce(async function (this: TableService, ...asked) {
      expect((await server.send('POST', '/db/v1/tables/bad')).status).toBe(200);
      await server.send('POST', '/db/v1/tables/bad/batch', { inserts: { z: { generation: 'another' } } });
      return publish.apply(this, asked);
    });
    const body = { ...request(place), restore_mode: mode, table_names: ['bad'] };
    const asked = await server.send<{ job_id: string }>('POST', '/db/v1/restore', body);
    const job = await endOfRestore(server, asked.body.job_id);
    expect(job).toMatchObject({ phase, published_table_count: 0 });
    if (phase === 'failed') expect(job.error).toContain('already_exists');
    expect(await generationOf(server, 'bad')).toEqual([undefined, 'another']);
    expect(readdirSync(join(server.directory, 'ranges'))).toHaveLength(3);
  },
);
