import { must } from '../../src/lib/assert.ts';
import { openTestStorage } from './storage-fixture.ts';

// Holds the data directory named by the first argument until it is killed.
await openTestStorage(must(process.argv[2], 'usage: lock-holder DIRECTORY'));
process.stdout.write('held\n');
setInterval(() => undefined, 1_000);
