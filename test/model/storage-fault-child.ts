import { must } from '../../src/lib/assert.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { openStorage } from '../../src/storage/open-storage.ts';
import { FaultControl, type FaultRule } from '../support/fault/fault-control.ts';
import { createTable, documentOf, frameOf, group } from './storage-fixture.ts';

// usage: storage-fault-child DIRECTORY CONTROL, under the fault library. Reads steps as JSON lines from standard input
// and answers each with a JSON line.
export type FaultStep =
  | { do: 'arm'; rule: FaultRule }
  | { do: 'disarm' }
  | { do: 'append'; places: number[]; key: string }
  | { do: 'get'; place: number; key: string }
  | { do: 'fatal' };

const control = new FaultControl(must(process.argv[3], 'no control file'));
const fatal: string[] = [];
const storage = await openStorage({
  directory: must(process.argv[2], 'no directory'),
  clock: systemClock,
  onFatal: (error) => fatal.push('code' in error ? String(error.code) : error.message),
});
const table = storage.catalog.table('things') ?? (await createTable(storage, 'things', 3));
const ranges = await Promise.all(table.ranges.map(({ rangeId }) => storage.openRange(rangeId)));

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
    case 'append': {
      const frame = () => frameOf({ puts: { [step.key]: { n: 1 } } });
      const writes = step.places.map((place) => ({ rangeId: range(place).rangeId, frame: frame() }));
      return storage.append(group(writes)).then(
        () => 'done',
        ({ code, details }) => ({ code, details }),
      );
    }
  }
}

for await (const line of console) {
  await Bun.write(Bun.stdout, `${JSON.stringify(await perform(JSON.parse(line) as FaultStep))}\n`);
}
