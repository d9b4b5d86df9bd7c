import { existsSync, statSync } from 'node:fs';
import { must } from '../../src/lib/assert.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type FaultKind, Health } from '../../src/observability/health.ts';
import { openStorage } from '../../src/storage/open-storage.ts';
import { FaultControl, type FaultRule } from '../support/fault/fault-control.ts';
import { until } from '../support/fault/until.ts';
import { createTable, documentOf, frameOf, group } from './storage-fixture.ts';

// usage: disk-fault-child DIRECTORY CONTROL [RESERVE BYTES], under the fault library. Reads steps as JSON lines from
// standard input and answers each with a JSON line.
export type FaultStep =
  | { do: 'arm'; rule: FaultRule }
  | { do: 'disarm' }
  | { do: 'append'; places: number[]; key: string }
  | { do: 'delete'; places: number[]; key: string }
  | { do: 'get'; place: number; key: string }
  /** Waits until the document is there without anybody writing. */
  | { do: 'appears'; place: number; key: string }
  /** Waits until exactly these faults stand. */
  | { do: 'stand'; faults: FaultKind[] }
  /** Waits until the write-ahead log of a range is no longer than that. */
  | { do: 'log'; place: number; bytes: number }
  /** Waits until the reserve has the given size, bytes. */
  | { do: 'reserves'; bytes: number }
  /** Copies the write-ahead logs into their files. */
  | { do: 'checkpoint' }
  | { do: 'close' }
  | { do: 'redone' }
  /** Of the write-ahead logs of the ranges, how many hold anything. */
  | { do: 'logs' }
  /** Waits until the writer says that the disk has failed. */
  | { do: 'fails' }
  | { do: 'fatal' };

const control = new FaultControl(must(process.argv[3], 'no control file'));
const fatal: string[] = [];
/** Ranges whose entries came by themselves, not by an append that was answered. */
const redone: number[] = [];
const health = new Health();
const storage = await openStorage({
  directory: must(process.argv[2], 'no directory'),
  clock: systemClock,
  health,
  reserveBytes: Number(process.argv[4] ?? 0),
  onFatal: (error) => fatal.push('code' in error ? String(error.code) : error.message),
});
const table = storage.catalog.table('things') ?? (await createTable(storage, 'things', 3));
const reserve = storage.directory.reserveFile;
for (const { rangeId } of table.ranges) storage.subscribe(rangeId, () => redone.push(rangeId));
const ranges = await Promise.all(table.ranges.map(({ rangeId }) => storage.openRange(rangeId)));

function logBytes(rangeId: number): number {
  return statSync(`${storage.directory.documentsFile(rangeId, 1)}-wal`).size;
}

async function perform(step: FaultStep): Promise<unknown> {
  const range = (place: number) => must(ranges[place], 'no such range');
  switch (step.do) {
    case 'arm':
      control.arm(step.rule);
      return 'armed';
    case 'disarm':
      control.disarmAll();
      return 'disarmed';
    case 'get':
      return documentOf(range(step.place).documents.get(step.key)?.body) ?? null;
    case 'fatal':
      return fatal;
    case 'close':
      return storage.close().then(
        () => 'closed',
        ({ message }) => ({ message }),
      );
    case 'checkpoint':
      return storage.walCheckpoint().then(
        () => 'copied',
        ({ code }) => ({ code }),
      );
    case 'redone':
      return redone;
    case 'appears':
      await until(async () => range(step.place).documents.get(step.key) !== undefined);
      return 'appeared';
    case 'stand':
      await until(async () =>
        Bun.deepEquals(
          health.faults().map(({ kind }) => kind),
          step.faults,
        ),
      );
      return step.faults;
    case 'log':
      await until(async () => logBytes(range(step.place).rangeId) <= step.bytes);
      return 'short';
    case 'logs':
      return ranges.filter(({ rangeId }) => logBytes(rangeId) > 0).length;
    case 'fails':
      await until(async () => fatal.length > 0);
      return 'failed';
    case 'reserves':
      await until(async () => (existsSync(reserve) ? statSync(reserve).size : 0) === step.bytes);
      return step.bytes;
    case 'append':
      return outcome(step.places, () => frameOf({ puts: { [step.key]: { n: 1 } } }));
    case 'delete':
      return outcome(step.places, () => frameOf({ deletes: [step.key] }));
  }
}

/** `done`, the ranges that take their rows later, or the error. */
function outcome(places: number[], frame: () => Uint8Array<ArrayBuffer>): Promise<unknown> {
  const writes = places.map((place) => ({ rangeId: must(ranges[place], 'no such range').rangeId, frame: frame() }));
  return storage.append(group(writes)).then(
    (applied) => {
      for (const { rangeId, images } of applied) if (images) redone.splice(redone.indexOf(rangeId), 1);
      const later = applied.flatMap(({ rangeId, isLater }) => (isLater ? [rangeId] : []));
      return later.length === 0 ? 'done' : { later };
    },
    ({ code, details }) => ({ code, details }),
  );
}

for await (const line of console) {
  await Bun.write(Bun.stdout, `${JSON.stringify(await perform(JSON.parse(line) as FaultStep))}\n`);
}
