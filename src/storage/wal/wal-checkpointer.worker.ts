import { Database } from 'bun:sqlite';
import { serveChannel } from '../../runtime/worker-channel.ts';
import { translateStorageError } from '../storage-error.ts';
import type { WalCheckpointerCalls } from './wal-checkpointer.ts';

declare const self: Worker;

const busyTimeoutMs = 5_000;

/** Copies what the log of the file at `path` holds into the file, while its writer goes on. */
function checkpointLog(path: string): void {
  const database = new Database(path, { readwrite: true, create: false });
  try {
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    database.run('PRAGMA synchronous = FULL');
    database.run('PRAGMA wal_checkpoint(PASSIVE)');
  } finally {
    database.close();
  }
}

serveChannel<WalCheckpointerCalls>(
  self,
  (batch) => {
    for (const call of batch) {
      try {
        checkpointLog(call.request.path);
        call.resolve(undefined);
      } catch (error) {
        call.reject(translateStorageError(error, call.request.path));
      }
    }
  },
  () => undefined,
);
