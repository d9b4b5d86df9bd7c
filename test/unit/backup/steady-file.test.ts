import { describe, expect, test } from 'bun:test';
import { SteadyFile, syncBytes } from '../../../src/backup/stores/steady-file.ts';

/** Notes what is asked of it; `datasync` waits until it is told how it ends. */
function file() {
  const calls: string[] = [];
  const syncs: PromiseWithResolvers<void>[] = [];
  const note = (call: string) => async () => void calls.push(call);
  const written = {
    write: async (_bytes: Uint8Array, _at: number, length: number) => ({ bytesWritten: Math.min(length, 3_000_000) }),
    datasync: () => {
      calls.push('datasync');
      const sync = Promise.withResolvers<void>();
      syncs.push(sync);
      return sync.promise;
    },
    sync: note('sync'),
    close: note('close'),
  };
  return { calls, syncs, steady: new SteadyFile(written as never) };
}

const half = new Uint8Array(syncBytes / 2);

describe('a payload in a folder', () => {
  test('is synced along the way, one sync at a time, and as a whole before it is closed', async () => {
    const { calls, syncs, steady } = file();
    await steady.write(half);
    expect(calls).toEqual([]);
    for (let n = 0; n < 5; n += 1) await steady.write(half);
    expect(calls).toEqual(['datasync']);
    syncs[0]?.resolve();
    await Promise.resolve();
    await steady.write(half);
    expect(calls).toEqual(['datasync', 'datasync']);
    const finished = steady.finish();
    expect(calls).not.toContain('sync');
    syncs[1]?.resolve();
    await finished;
    expect(calls).toEqual(['datasync', 'datasync', 'sync', 'close']);
  });

  test('is not finished when a sync on the way has failed, which the system tells once', async () => {
    const { calls, syncs, steady } = file();
    for (let n = 0; n < 2; n += 1) await steady.write(half);
    syncs[0]?.reject(new Error('EIO'));
    await steady.write(half);
    expect(steady.finish()).rejects.toThrow('EIO');
    await steady.abandon();
    expect(calls).toEqual(['datasync', 'close']);
  });
});
