import { describe, expect, test } from 'bun:test';
import { systemClock } from '../../src/lib/clock.ts';
import { openStorage } from '../../src/storage/open-storage.ts';
import { startWriterThread } from '../../src/storage/writer/writer-thread.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

const options = { clock: systemClock, onFatal: () => undefined };

describe('a writer thread that was started before the directory is known', () => {
  test('writes to the directory that it is given', async () => {
    using directory = new TemporaryDirectory();
    const storage = await openStorage({ ...options, directory: directory.path, writer: startWriterThread() });
    await storage.walCheckpoint();
    await storage.close();
  });

  test('fails the opening, and leaves the directory unlocked, when it has ended before', async () => {
    using directory = new TemporaryDirectory();
    const writer = startWriterThread();
    writer.worker.terminate();
    await expect(writer.failure).rejects.toThrow('the writer thread ended');
    await expect(openStorage({ ...options, directory: directory.path, writer })).rejects.toThrow(
      'the writer thread ended',
    );
    const storage = await openStorage({ ...options, directory: directory.path });
    await storage.close();
  });
});
