import { expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { changingCalls, FaultControl } from '../support/fault/fault-control.ts';
import { faultLibrary } from '../support/fault/fault-library.ts';
import type { FaultStep } from './disk-fault-child.ts';
import { documentOf, openTestStorage, temporaryDirectory } from './storage-fixture.ts';

setDefaultTimeout(120_000);

const child = Bun.fileURLToPath(new URL('./disk-fault-child.ts', import.meta.url));

/** Runs the steps in one process under the fault library, kills it, and returns the answers. */
async function answersTo(directory: string, steps: FaultStep[], reserveBytes = 0): Promise<unknown[]> {
  const control = new FaultControl(join(directory, 'control'));
  const running = Bun.spawn([process.execPath, child, join(directory, 'data'), control.path, String(reserveBytes)], {
    env: { ...process.env, LD_PRELOAD: await faultLibrary(), FAULT_CONTROL: control.path },
    stdin: new Blob([`${steps.map((step) => JSON.stringify(step)).join('\n')}\n`]),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const lines: unknown[] = [];
  let text = '';
  for await (const chunk of running.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n')) {
      lines.push(JSON.parse(text.slice(0, end)));
      text = text.slice(end + 1);
    }
    if (lines.length === steps.length) running.kill('SIGKILL');
  }
  await running.exited;
  if (lines.length < steps.length) throw new Error(await new Response(running.stderr).text());
  return lines;
}

test('a range that cannot take its part of a committed write takes it before any other', async () => {
  using directory = temporaryDirectory();
  const full: FaultStep = {
    do: 'arm',
    rule: { calls: ['write'], path: '/ranges/2/1/documents.db', action: 'ENOSPC' },
  };
  const answers = await answersTo(directory.path, [
    full,
    { do: 'append', places: [0, 1, 2], key: 'a' },
    { do: 'append', places: [1], key: 'b' },
    { do: 'append', places: [0, 1], key: 'c' },
    { do: 'append', places: [2], key: 'd' },
    { do: 'get', place: 0, key: 'a' },
    { do: 'get', place: 1, key: 'a' },
    { do: 'disarm' },
    { do: 'append', places: [1], key: 'e' },
    { do: 'get', place: 1, key: 'a' },
    { do: 'get', place: 1, key: 'b' },
    { do: 'get', place: 0, key: 'c' },
    { do: 'append', places: [0, 1, 2], key: 'f' },
    { do: 'fatal' },
  ]);
  expect(answers).toEqual([
    'armed',
    { later: [2] },
    { code: 'insufficient_storage' },
    { code: 'insufficient_storage' },
    'done',
    { n: 1 },
    null,
    'disarmed',
    'done',
    { n: 1 },
    null,
    null,
    'done',
    [],
  ]);
});

test('a range takes by itself, once there is room, what it could not take, and says so', async () => {
  using directory = temporaryDirectory();
  const full: FaultStep = {
    do: 'arm',
    rule: { calls: ['write'], path: '/ranges/2/1/documents.db', action: 'ENOSPC' },
  };
  const answers = await answersTo(directory.path, [
    full,
    { do: 'append', places: [0, 1, 2], key: 'a' },
    { do: 'get', place: 1, key: 'a' },
    { do: 'stand', faults: ['disk_full', 'redo_pending'] },
    { do: 'disarm' },
    { do: 'appears', place: 1, key: 'a' },
    { do: 'stand', faults: [] },
    { do: 'redone' },
  ]);
  expect(answers).toEqual([
    'armed',
    { later: [2] },
    null,
    ['disk_full', 'redo_pending'],
    'disarmed',
    'appeared',
    [],
    [2],
  ]);
  const storage = await openTestStorage(join(directory.path, 'data'));
  expect(storage.start.redone).toBe(0);
  await storage.close();
});

test('a full disk gives its reserve to deletes and to committed writes, and to nothing else until it has it back', async () => {
  using directory = temporaryDirectory();
  const reserveBytes = 64 * 1_024;
  const reserve = join(directory.path, 'data', 'reserve');
  const full = (path: string): FaultStep => ({
    do: 'arm',
    rule: { calls: ['write'], path, action: 'ENOSPC', while: reserve },
  });
  const answers = await answersTo(
    directory.path,
    [
      { do: 'reserves', bytes: reserveBytes },
      { do: 'append', places: [0, 1, 2], key: 'a' },
      full('.db'),
      { do: 'append', places: [0], key: 'b' },
      { do: 'reserves', bytes: reserveBytes },
      { do: 'delete', places: [0, 1], key: 'a' },
      { do: 'get', place: 0, key: 'a' },
      { do: 'append', places: [0], key: 'c' },
      { do: 'get', place: 0, key: 'c' },
      { do: 'disarm' },
      { do: 'stand', faults: [] },
      { do: 'append', places: [0], key: 'd' },
      { do: 'reserves', bytes: reserveBytes },
      full('/ranges/2/1/documents.db'),
      { do: 'append', places: [0, 1], key: 'e' },
      { do: 'get', place: 1, key: 'e' },
      { do: 'fatal' },
    ],
    reserveBytes,
  );
  const refused = { code: 'insufficient_storage' };
  expect(answers).toEqual([
    reserveBytes,
    'done',
    'armed',
    refused,
    reserveBytes,
    'done',
    null,
    refused,
    null,
    'disarmed',
    [],
    'done',
    reserveBytes,
    'armed',
    'done',
    { n: 1 },
    [],
  ]);
});

test('a committed write that a range never took is finished at the next start', async () => {
  using directory = temporaryDirectory();
  await answersTo(directory.path, [
    { do: 'arm', rule: { calls: ['write'], path: '/ranges/2/1/documents.db', action: 'ENOSPC' } },
    { do: 'append', places: [0, 1], key: 'a' },
  ]);
  const storage = await openTestStorage(join(directory.path, 'data'));
  expect(storage.start.redone).toBe(1);
  const range = await storage.openRange(2);
  expect(documentOf(range.documents.get('a')?.body)).toEqual({ n: 1 });
  await storage.close();
});

test('a failed sync ends all writing, whatever comes after it', async () => {
  using directory = temporaryDirectory();
  const answers = await answersTo(directory.path, [
    { do: 'append', places: [0], key: 'a' },
    { do: 'arm', rule: { calls: ['sync'], path: 'documents.db-wal', action: 'EIO', times: 1 } },
    { do: 'append', places: [0], key: 'b' },
    { do: 'append', places: [0], key: 'c' },
    { do: 'append', places: [1], key: 'd' },
    { do: 'get', place: 0, key: 'a' },
    { do: 'fatal' },
  ]);
  const failed = { code: 'storage_failed' };
  expect(answers).toEqual(['done', 'armed', failed, failed, failed, { n: 1 }, ['storage_failed']]);
});

test('a file that a full disk lets nobody cut ends nothing: what needs that is refused, and works when there is room', async () => {
  using directory = temporaryDirectory();
  const answers = await answersTo(directory.path, [
    { do: 'append', places: [0], key: 'a' },
    { do: 'arm', rule: { calls: ['truncate'], path: '.db$', action: 'ENOSPC' } },
    { do: 'checkpoint' },
    { do: 'append', places: [0], key: 'b' },
    { do: 'disarm' },
    { do: 'checkpoint' },
    { do: 'stand', faults: [] },
    { do: 'fatal' },
  ]);
  expect(answers).toEqual(['done', 'armed', { code: 'insufficient_storage' }, 'done', 'disarmed', 'copied', [], []]);
});

test('a reserve that a full disk lets nobody remove is cut', async () => {
  using directory = temporaryDirectory();
  const reserveBytes = 64 * 1_024;
  const reserve = join(directory.path, 'data', 'reserve');
  const answers = await answersTo(
    directory.path,
    [
      { do: 'append', places: [0], key: 'a' },
      { do: 'reserves', bytes: reserveBytes },
      { do: 'arm', rule: { calls: ['unlink'], path: reserve, action: 'ENOSPC' } },
      { do: 'arm', rule: { calls: ['write'], path: 'documents.db-wal', action: 'ENOSPC', times: 3 } },
      // As long as the catalog takes no writes the disk is full.
      { do: 'arm', rule: { calls: ['write'], path: 'catalog.db', action: 'ENOSPC' } },
      { do: 'delete', places: [0], key: 'a' },
      { do: 'reserves', bytes: 0 },
      { do: 'disarm' },
      { do: 'stand', faults: [] },
      { do: 'append', places: [0], key: 'b' },
      { do: 'reserves', bytes: reserveBytes },
      { do: 'fatal' },
    ],
    reserveBytes,
  );
  expect(answers).toEqual([
    'done',
    reserveBytes,
    'armed',
    'armed',
    'armed',
    'done',
    0,
    'disarmed',
    [],
    'done',
    reserveBytes,
    [],
  ]);
});

test('a write for which a full disk has no room but that of logs gets it, and is not refused', async () => {
  using directory = temporaryDirectory();
  const answers = await answersTo(directory.path, [
    { do: 'append', places: [0], key: 'a' },
    { do: 'append', places: [1], key: 'a' },
    { do: 'arm', rule: { calls: ['write'], path: '/ranges/1/1/documents.db-wal', action: 'ENOSPC', times: 1 } },
    { do: 'append', places: [0], key: 'b' },
    { do: 'log', place: 1, bytes: 0 },
    { do: 'stand', faults: [] },
    { do: 'fatal' },
  ]);
  expect(answers).toEqual(['done', 'done', 'armed', 'done', 'short', [], []]);
});

test('a full disk spends no more of its reserve than a delete needs', async () => {
  using directory = temporaryDirectory();
  const MiB = 1_024 * 1_024;
  const answers = await answersTo(
    directory.path,
    [
      { do: 'append', places: [0], key: 'a' },
      { do: 'reserves', bytes: 12 * MiB },
      { do: 'arm', rule: { calls: ['write'], path: '/catalog.db', action: 'ENOSPC' } },
      { do: 'arm', rule: { calls: ['write'], path: '/ranges/1/1/documents.db-wal', action: 'ENOSPC', times: 3 } },
      { do: 'delete', places: [0], key: 'a' },
      { do: 'reserves', bytes: 8 * MiB },
      { do: 'append', places: [0], key: 'b' },
      { do: 'disarm' },
      { do: 'stand', faults: [] },
      { do: 'append', places: [0], key: 'c' },
      { do: 'reserves', bytes: 12 * MiB },
      { do: 'get', place: 0, key: 'b' },
      { do: 'fatal' },
    ],
    12 * MiB,
  );
  const refused = { code: 'insufficient_storage' };
  expect(answers).toEqual([
    'done',
    12 * MiB,
    'armed',
    'armed',
    'done',
    8 * MiB,
    refused,
    'disarmed',
    [],
    'done',
    12 * MiB,
    null,
    [],
  ]);
});

test('a full disk gets the space back that write-ahead logs keep ahead, and what they hold where their files have room', async () => {
  using directory = temporaryDirectory();
  const answers = await answersTo(directory.path, [
    { do: 'append', places: [0], key: 'a' },
    { do: 'append', places: [1], key: 'a' },
    { do: 'arm', rule: { calls: ['write'], path: '.db', action: 'ENOSPC' } },
    { do: 'append', places: [0], key: 'b' },
    { do: 'log', place: 0, bytes: 100_000 },
    { do: 'log', place: 1, bytes: 100_000 },
    { do: 'get', place: 0, key: 'a' },
    { do: 'disarm' },
    { do: 'stand', faults: [] },
    { do: 'append', places: [0, 1], key: 'c' },
    { do: 'get', place: 1, key: 'a' },
    { do: 'get', place: 1, key: 'c' },
    { do: 'fatal' },
  ]);
  const refused = { code: 'insufficient_storage' };
  expect(answers).toEqual([
    'done',
    'done',
    'armed',
    refused,
    'short',
    'short',
    { n: 1 },
    'disarmed',
    [],
    'done',
    { n: 1 },
    { n: 1 },
    [],
  ]);
  const storage = await openTestStorage(join(directory.path, 'data'));
  for (const [place, keys] of [
    [1, ['a', 'c']],
    [2, ['a', 'c']],
  ] as const) {
    const range = await storage.openRange(place);
    for (const key of keys) expect(documentOf(range.documents.get(key)?.body)).toEqual({ n: 1 });
  }
  await storage.close();
});

test('a sync that fails while a full disk gets its logs back ends all writing: no other log is emptied', async () => {
  using directory = temporaryDirectory();
  const answers = await answersTo(directory.path, [
    { do: 'append', places: [0, 1, 2], key: 'a' },
    { do: 'arm', rule: { calls: ['sync'], path: 'documents.db$', action: 'EIO', times: 1 } },
    { do: 'arm', rule: { calls: ['write'], path: '.db-wal', action: 'ENOSPC' } },
    { do: 'append', places: [0], key: 'b' },
    { do: 'fails' },
    { do: 'append', places: [1], key: 'c' },
    { do: 'logs' },
    { do: 'fatal' },
  ]);
  const failed = { code: 'storage_failed' };
  expect(answers).toEqual(['done', 'armed', 'armed', failed, 'failed', failed, 3, ['storage_failed']]);
  const storage = await openTestStorage(join(directory.path, 'data'));
  for (const id of [1, 2, 3]) {
    const range = await storage.openRange(id);
    expect(documentOf(range.documents.get('a')?.body)).toEqual({ n: 1 });
  }
  await storage.close();
});

test('a stop on a full disk closes everything, whatever has yet to be forgotten', async () => {
  using directory = temporaryDirectory();
  const answers = await answersTo(directory.path, [
    { do: 'append', places: [0, 1, 2], key: 'a' },
    { do: 'append', places: [2], key: 'b' },
    { do: 'arm', rule: { calls: ['write'], path: '.db', action: 'ENOSPC' } },
    { do: 'close' },
    { do: 'fatal' },
  ]);
  expect(answers).toEqual(['done', 'done', 'armed', 'closed', []]);
  const storage = await openTestStorage(join(directory.path, 'data'));
  const range = await storage.openRange(3);
  for (const key of ['a', 'b']) expect(documentOf(range.documents.get(key)?.body)).toEqual({ n: 1 });
  await storage.close();
});

test('a write that fails while the disk takes others is refused, and ends nothing', async () => {
  using directory = temporaryDirectory();
  const answers = await answersTo(directory.path, [
    { do: 'append', places: [0], key: 'a' },
    { do: 'arm', rule: { calls: ['write'], path: 'documents.db-wal', action: 'EIO', times: 1 } },
    { do: 'append', places: [0], key: 'b' },
    { do: 'append', places: [0, 1], key: 'c' },
    { do: 'get', place: 0, key: 'b' },
    { do: 'get', place: 0, key: 'c' },
    { do: 'fatal' },
  ]);
  expect(answers).toEqual(['done', 'armed', { code: 'unavailable' }, 'done', null, { n: 1 }, []]);
});

test('a read-only disk refuses writes, keeps reads, and takes writes again when it recovers', async () => {
  using directory = temporaryDirectory();
  const answers = await answersTo(directory.path, [
    { do: 'append', places: [0], key: 'a' },
    { do: 'arm', rule: { calls: changingCalls, path: directory.path, action: 'EROFS' } },
    { do: 'append', places: [0], key: 'b' },
    { do: 'append', places: [0, 1], key: 'c' },
    { do: 'get', place: 0, key: 'a' },
    { do: 'disarm' },
    { do: 'append', places: [0, 1], key: 'd' },
    { do: 'get', place: 0, key: 'b' },
    { do: 'fatal' },
  ]);
  const refused = { code: 'read_only' };
  expect(answers).toEqual(['done', 'armed', refused, refused, { n: 1 }, 'disarmed', 'done', null, []]);
});
