import { closeSync, openSync, statSync } from 'node:fs';
import { must } from '../../src/lib/assert.ts';
import { writeDurably } from '../../src/storage/directory/durable-file.ts';
import { extendSynced, writeSynced } from '../../src/storage/directory/synced-file.ts';

// usage: small-file-child PATH, in a process whose files may have no more than a few kilobytes. Prints how each way to write more
// has ended.
const path = must(process.argv[2], 'no path');
const more = new Uint8Array(64 * 1_024).fill(1);

function outcome(write: () => void): string {
  try {
    write();
    return 'written';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

function extended(): string {
  writeSynced(path, 'w', 'text');
  const descriptor = openSync(path, 'r+');
  const ended = outcome(() => extendSynced(descriptor, 4, more));
  closeSync(descriptor);
  return `${ended}, ${statSync(path).size} bytes`;
}

const outcomes = {
  synced: outcome(() => writeSynced(path, 'w', more)),
  durable: outcome(() => writeDurably(`${path}.text`, 'x'.repeat(more.byteLength), 0o600)),
  extended: extended(),
};
console.log(JSON.stringify(outcomes));
