import { afterEach, describe, expect, mock, spyOn, test } from 'bun:test';
import { once } from 'node:events';
import { IndexedRange } from '../../../src/indexing/indexed-range.ts';
import { TableService } from '../../../src/tables/table-service.ts';
import { BackupBucket } from '../../support/backup-bucket.ts';
import { until } from '../../support/fault/until.ts';
import { endOfRestore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

/** The rows of the specification's table of a restore job (section 3), and B09, one test each. */

const timeout = { timeout: 120_000 };
const location = 's3://backups/nightly';
const tables = ['a', 'b'];

afterEach(() => mock.restore());

interface Job {
  job_id: string;
  phase: string;
  cancel_requested: boolean;
  published_table_count: number;
}

/** Holds reads of a bucket whose URL matches until it is opened. */
class Gate {
  readonly #opened = Promise.withResolvers<undefined>();
  readonly #reached = Promise.withResolvers<void>();

  constructor(bucket: BackupBucket, isHeld: (url: string) => boolean) {
    bucket.misbehave = ({ method, url }) => {
      if (method !== 'GET' || !isHeld(url)) return undefined;
      this.#reached.resolve();
      return this.#opened.promise;
    };
  }

  /** Resolves when somebody stands before it. */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  open(): void {
    this.#opened.resolve(undefined);
  }
}

async function write(server: TestServer, generation: string): Promise<void> {
  for (const table of tables) {
    const inserts = Object.fromEntries(['0', 'm', 'z'].map((key) => [key, { generation }]));
    expect((await server.send('POST', `/db/v1/tables/${table}/batch`, { inserts })).status).toBe(201);
  }
}

/** A server whose tables have changed since its backup. */
async function prepared(bucket: BackupBucket, format: string): Promise<TestServer> {
  const server = await bucket.server();
  for (const table of tables) await server.send('POST', `/db/v1/tables/${table}`, { num_shards: 2 });
  await write(server, 'first');
  const made = await server.send('POST', '/db/v1/backup', { backup_id: 'b', location, format });
  expect(made.body).toMatchObject({ status: 'completed' });
  await write(server, 'second');
  return server;
}

const ask = async (server: TestServer, more: object = {}) => {
  const body = { backup_id: 'b', location, restore_mode: 'overwrite', ...more };
  const answer = await server.send<Job>('POST', '/db/v1/restore', body);
  expect(answer.status).toBe(202);
  return answer.body;
};
const jobOf = async (server: TestServer, { job_id: id }: Job) =>
  (await server.send<Job>('GET', `/db/v1/restore/jobs/${id}`)).body;
const cancel = async (server: TestServer, { job_id: id }: Job) =>
  (await server.send<Job>('DELETE', `/db/v1/restore/jobs/${id}`)).body;

/** The generation of each table, which all of its documents have. */
async function generations(server: TestServer): Promise<unknown[]> {
  const all: unknown[] = [];
  for (const table of tables) {
    const found = await Promise.all(
      ['0', 'm', 'z'].map(
        async (key) =>
          (await server.send<{ generation: string }>('GET', `/db/v1/tables/${table}/lookup/${key}`)).body.generation,
      ),
    );
    expect(new Set(found).size).toBe(1);
    all.push(found[0]);
  }
  return all;
}

describe.each(['portable', 'native'])('a restore job, of a backup of the format "%s"', (format) => {
  test(
    'begins as `queued`, and a cancellation there ends it at once',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await prepared(bucket, format);
      const gate = new Gate(bucket, (url) => url.includes('b-cluster-metadata.json'));
      // Two restores run side by side; the third waits.
      const running = [await ask(server), await ask(server)];
      await until(async () => {
        const phases = await Promise.all(running.map(async (job) => (await jobOf(server, job)).phase));
        return phases.every((phase) => phase === 'running');
      });
      const waiting = await ask(server);
      expect(waiting).toMatchObject({ phase: 'queued', cancel_requested: false, published_table_count: 0 });
      expect(await jobOf(server, waiting)).toMatchObject({ phase: 'queued' });
      const cancelled = { phase: 'cancelled', cancel_requested: true, error: 'cancelled: the restore was cancelled' };
      expect(await cancel(server, waiting)).toMatchObject(cancelled);
      expect(await cancel(server, waiting)).toMatchObject(cancelled);
      // Cancelled before they have read what there is to restore.
      for (const job of running) expect(await cancel(server, job)).toMatchObject({ cancel_requested: true });
      gate.open();
      for (const job of running) {
        const ended = await endOfRestore(server, job.job_id);
        expect(ended).toMatchObject({ ...cancelled, published_table_count: 0 });
      }
      expect(await generations(server)).toEqual(['second', 'second']);
    },
    timeout,
  );

  test(
    'stops at a cancellation in the middle of its first table with nothing published',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await prepared(bucket, format);
      const gate = new Gate(bucket, (url) => url.includes('/table-0-range-0') && url.includes('.zst'));
      const job = await ask(server);
      await gate.reached;
      expect(await cancel(server, job)).toMatchObject({ phase: 'running', cancel_requested: true });
      gate.open();
      const ended = await endOfRestore(server, job.job_id);
      expect(ended).toMatchObject({ phase: 'cancelled', cancel_requested: true, published_table_count: 0 });
      expect(ended).toMatchObject({ result: { status: 'failed', durability: 'none', committed_table_count: 0 } });
      expect(await generations(server)).toEqual(['second', 'second']);
      await write(server, 'third');
      expect(await generations(server)).toEqual(['third', 'third']);
    },
    timeout,
  );

  test(
    'stops at a cancellation between two publications: what is published stays',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await prepared(bucket, format);
      const gate = new Gate(bucket, (url) => url.includes('/table-1-range-') && url.includes('.zst'));
      const job = await ask(server);
      await gate.reached;
      expect(await cancel(server, job)).toMatchObject({ phase: 'running', published_table_count: 1 });
      gate.open();
      const ended = await endOfRestore(server, job.job_id);
      expect(ended).toMatchObject({ phase: 'cancelled', cancel_requested: true, published_table_count: 1 });
      expect(ended).toMatchObject({ result: { status: 'partial', durability: 'committed', committed_table_count: 1 } });
      expect(await generations(server)).toEqual(['first', 'second']);
    },
    timeout,
  );

  test(
    'stops at a cancellation while it waits for the indexes of a table: nothing of that is published',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await prepared(bucket, format);
      const reached = Promise.withResolvers<void>();
      const wait = IndexedRange.prototype.waitForIndexes;
      spyOn(IndexedRange.prototype, 'waitForIndexes').mockImplementation(async function (this: IndexedRange, ...asked) {
        const [, , signal] = asked;
        reached.resolve();
        if (signal?.aborted === false) await once(signal, 'abort');
        return wait.apply(this, asked);
      });
      const job = await ask(server);
      await reached.promise;
      expect(await cancel(server, job)).toMatchObject({ cancel_requested: true });
      const ended = await endOfRestore(server, job.job_id);
      expect(ended).toMatchObject({ phase: 'cancelled', cancel_requested: true, published_table_count: 0 });
      mock.restore();
      expect(await generations(server)).toEqual(['second', 'second']);
      await write(server, 'third');
      expect(await generations(server)).toEqual(['third', 'third']);
    },
    timeout,
  );

  test(
    'ends at a cancellation while a table is published with that table, and without the next one',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await prepared(bucket, format);
      const reached = Promise.withResolvers<void>();
      const opened = Promise.withResolvers<void>();
      const publish = TableService.prototype.publish;
      spyOn(TableService.prototype, 'publish').mockImplementation(async function (this: TableService, ...asked) {
        reached.resolve();
        await opened.promise;
        return publish.apply(this, asked);
      });
      const job = await ask(server);
      await reached.promise;
      expect(await cancel(server, job)).toMatchObject({ phase: 'running', cancel_requested: true });
      opened.resolve();
      const ended = await endOfRestore(server, job.job_id);
      expect(ended).toMatchObject({ phase: 'cancelled', cancel_requested: true, published_table_count: 1 });
      expect(await generations(server)).toEqual(['first', 'second']);
    },
    timeout,
  );

  test(
    'that has published everything is `succeeded` and stays so, with the cancellation noted',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await prepared(bucket, format);
      const ended = await endOfRestore(server, (await ask(server)).job_id);
      expect(ended).toMatchObject({ phase: 'succeeded', cancel_requested: false, published_table_count: 2 });
      expect(await generations(server)).toEqual(['first', 'first']);
      for (let n = 0; n < 2; n += 1) {
        expect(await cancel(server, ended as Job)).toMatchObject({ phase: 'succeeded', cancel_requested: true });
      }
      expect(await generations(server)).toEqual(['first', 'first']);
    },
    timeout,
  );

  test(
    'that has failed stays so, and notes no cancellation',
    async () => {
      await using bucket = await BackupBucket.open();
      await using server = await prepared(bucket, format);
      const ended = await endOfRestore(server, (await ask(server, { restore_mode: 'fail_if_exists' })).job_id);
      expect(ended).toMatchObject({ phase: 'failed', published_table_count: 0 });
      expect(await cancel(server, ended as Job)).toMatchObject({ phase: 'failed', cancel_requested: false });
      expect(await generations(server)).toEqual(['second', 'second']);
    },
    timeout,
  );
});

describe.each([
  ['a payload', '.zst'],
  ['the manifest of a table', '/table-0.json'],
  ['the manifest of the backup', '-cluster-metadata.json'],
])('a backup whose client goes away while %s is written', (_, name) => {
  test.each(['portable', 'native'])(
    'is there whole or not at all, and the database goes on: %s',
    async (format) => {
      await using bucket = await BackupBucket.open();
      await using server = await prepared(bucket, format);
      const reached = Promise.withResolvers<void>();
      const opened = Promise.withResolvers<undefined>();
      bucket.misbehave = ({ method, url }) => {
        if (method !== 'PUT' || !url.includes('/c') || !url.includes(name)) return undefined;
        reached.resolve();
        return opened.promise;
      };
      const client = new AbortController();
      const request = { backup_id: 'c', location, format };
      const asked = fetch(`${server.url}/db/v1/backup`, {
        method: 'POST',
        body: JSON.stringify(request),
        signal: client.signal,
      }).catch(() => undefined);
      await reached.promise;
      client.abort();
      opened.resolve(undefined);
      await asked;
      bucket.misbehave = () => undefined;
      await write(server, 'third');
      // Whether the server has heard of it in time or not, the id leads to one whole backup in the end.
      await until(async () => {
        const { status, body } = await server.send<{ status?: string }>('POST', '/db/v1/backup', request);
        return status === 409 || body.status === 'completed';
      });
      const job = await endOfRestore(server, (await ask(server, { backup_id: 'c' })).job_id);
      expect(job).toMatchObject({ phase: 'succeeded', published_table_count: 2 });
      expect(new Set(await generations(server)).size).toBe(1);
    },
    timeout,
  );
});
