import { systemClock } from '../../lib/clock.ts';
import { serveChannel } from '../../runtime/worker-channel.ts';
import type { StorageCalls, StorageEvent } from '../storage-calls.ts';
import { StorageWriter } from './storage-writer.ts';

declare const self: Worker;

const server = serveChannel<StorageCalls, StorageEvent>(
  self,
  (batch) => writer.handle(batch),
  () => writer.maintain(),
);
const writer = new StorageWriter(server, systemClock);
