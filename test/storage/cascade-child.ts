import { must } from '../../src/lib/assert.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { openStorage } from '../../src/storage/open-storage.ts';
import { constraintsOf, deletionOf } from './cascade-tables.ts';

// usage: cascade-child DIRECTORY FAILPOINT. Deletes authors one after another, whose books lie in all ranges, and prints each
// that is acknowledged.
const [directory, failpoint] = [must(process.argv[2], 'no directory'), must(process.argv[3], 'no failpoint')];
const storage = await openStorage({
  directory,
  clock: systemClock,
  failpoint,
  onFatal: (error) => {
    throw error;
  },
});
const constrained = constraintsOf(storage);
for (let author = 0; author < 5; author += 1) {
  await storage.append(deletionOf(storage, author, constrained));
  await Bun.write(Bun.stdout, `${author}\n`);
}
await storage.close();
