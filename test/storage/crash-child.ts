import { must } from '../../src/lib/assert.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { openStorage } from '../../src/storage/open-storage.ts';
import { frameOf, group } from './storage-fixture.ts';

// usage: crash-child DIRECTORY FAILPOINT [packs]. Opens a table of three ranges made before, writes documents with
// vectors over all ranges and single ones beside them, and prints the number of each write when it is acknowledged.
const [directory, failpoint] = [must(process.argv[2], 'no directory'), must(process.argv[3], 'no failpoint')];
const packs = process.argv[4] === 'packs';
/** Long enough to be packed. */
const text = packs ? { text: 'amber birch cedar '.repeat(8) } : {};
const storage = await openStorage({
  directory,
  clock: systemClock,
  failpoint: failpoint === 'none' ? undefined : failpoint,
  onFatal: (error) => {
    throw error;
  },
});
const table = must(storage.catalog.table('things'), 'no table');
for (const { rangeId } of table.ranges) await storage.openRange(rangeId, undefined, packs);
const increment = { op: '$inc', path: 'n', value: 1 };
for (let round = 1; round <= 6; round += 1) {
  const writes = table.ranges.map(({ rangeId, startKey }) => ({
    rangeId,
    frame: frameOf({
      puts: { [`${startKey}-${round}`]: { round, ...text } },
      vectors: { [`${startKey}-${round}`]: { 1: [round] } },
      transforms: [{ key: `${startKey}-sum`, operations: [increment], upsert: true }],
    }),
  }));
  const single = must(writes[round % writes.length], 'no range');
  const together = storage.append(group(writes)).then(() => `group ${round}\n`);
  const alone = storage
    .append(group([{ ...single, frame: frameOf({ puts: { [`r9-single-${round}`]: { round } } }) }]))
    .then(() => `single ${round}\n`);
  for (const line of await Promise.all([together, alone])) await Bun.write(Bun.stdout, line);
}
await storage.walCheckpoint();
await storage.catalog.createTable({
  name: 'late',
  createdMs: 1,
  record: '{}',
  ranges: [{ startKey: '', endKey: null }],
  indexes: [],
});
await Bun.write(Bun.stdout, 'table late\n');
await storage.close();
