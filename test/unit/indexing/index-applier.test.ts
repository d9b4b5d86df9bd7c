import { describe, expect, test } from 'bun:test';
import { getEventListeners } from 'node:events';
import { UnwrittenCheckpointError } from '../../../src/engine/engine-error.ts';
import type { ApplierOptions } from '../../../src/indexing/applier/applier-deps.ts';
import { smallPageBytes } from '../../../src/indexing/applier/coalesce-pages.ts';
import { IndexApplier } from '../../../src/indexing/applier/index-applier.ts';
import type { ChangePage, RangeIndex } from '../../../src/indexing/range-index.ts';
import { WriterBudget } from '../../../src/indexing/writer-budget.ts';
import { FrameBuilder, readFrame, rowKind } from '../../../src/lib/document-frame.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

const bounds: ApplierOptions = {
  gatherMs: 0,
  visibilityMs: 200,
  busyVisibilityMs: 2_000,
  visibilityBytes: 1_000,
  queueBytesMax: 1_000,
  checkpointMs: 30_000,
  checkpointBytes: 10_000,
  writerIdleMs: 5_000,
  verifyDelayMs: 1_000,
};

interface BenchOptions {
  writers?: WriterBudget;
  mayDoubt?: () => boolean;
  options?: Partial<ApplierOptions>;
}

/** A range whose change feed is an array, and an index that remembers what it was given. */
class Bench {
  readonly clock = new FakeClock();
  readonly feed: ChangePage[] = [];
  readonly applied: number[] = [];
  readonly failures: unknown[] = [];
  readonly rebuilds: string[] = [];
  /** Attempts of checkpoints that could not be written. */
  readonly unwritten: number[] = [];
  readonly wipes: boolean[] = [];
  visible = 0;
  durable = 0;
  /** Noted by the last commit, and by the last checkpoint. */
  leftOut: number[] = [];
  durablyLeftOut: number[] = [];
  rested = 0;
  calls = 0;
  commits = 0;
  verified = 0;
  failNextApply: Error | undefined;
  failApply: Error | undefined;
  failCheckpoint: Error | undefined;
  /** Set while rows wait for background work of the index, which a close that is announced calls off. */
  room: PromiseWithResolvers<void> | undefined;
  /** A listener of failures that fails itself. */
  listenerFails = false;
  readonly damaged: boolean;
  readonly applier: IndexApplier;

  /** `damaged`: an index of all that is written lies there, and its files do not hold what they should. */
  constructor(written = 0, damaged = false, { writers, mayDoubt, options }: BenchOptions = {}) {
    this.damaged = damaged;
    if (damaged) this.durable = written;
    for (let sequence = 1; sequence <= written; sequence += 1) this.feed.push(page(sequence));
    this.applier = new IndexApplier({
      open: async (wipe) => this.#open(wipe),
      source: {
        head: () => this.feed.at(-1)?.lastSequence ?? 0,
        read: (after) => this.feed.find((each) => each.lastSequence > after),
      },
      clock: this.clock,
      options: { ...bounds, ...options },
      ...(writers === undefined ? {} : { writers }),
      ...(mayDoubt === undefined ? {} : { mayDoubt }),
      events: {
        rebuilding: (reason) => this.rebuilds.push(reason),
        unwritten: (_, attempt) => this.unwritten.push(attempt),
        failed: (error) => {
          this.failures.push(error);
          if (this.listenerFails) {
            this.listenerFails = false;
            throw new Error('a fault of the listener');
          }
        },
      },
    });
  }

  write(bytes = 10): ChangePage {
    const written = page((this.feed.at(-1)?.lastSequence ?? 0) + 1, bytes);
    this.feed.push(written);
    this.applier.offer(written);
    return written;
  }

  /** A row that is none of this index's business. */
  writeOther(): void {
    const written = { ...page((this.feed.at(-1)?.lastSequence ?? 0) + 1), frame: noRows };
    this.feed.push(written);
    this.applier.pass({ ...written, frame: page(written.lastSequence).frame });
  }

  #open(wipe: boolean): RangeIndex {
    this.wipes.push(wipe);
    if (wipe) [this.durable, this.durablyLeftOut] = [0, []];
    [this.visible, this.leftOut] = [this.durable, this.durablyLeftOut];
    return {
      handle: 1,
      openedAtSequence: this.durable,
      apply: async (bytes) => {
        const error = this.failNextApply ?? this.failApply;
        this.failNextApply = undefined;
        if (error) throw error;
        await this.room?.promise;
        const frame = readFrame(bytes as Uint8Array<ArrayBuffer>);
        for (let row = 0; row < frame.rowCount; row += 1) this.applied.push(frame.sequence(row));
        this.calls += 1;
        return { rows: frame.rowCount, skipped: [] };
      },
      commit: async (sequence, leftOut) => {
        this.commits += 1;
        if (leftOut) this.leftOut = [...leftOut];
        this.visible = sequence;
      },
      checkpoint: async () => {
        if (this.failCheckpoint) throw this.failCheckpoint;
        [this.durable, this.durablyLeftOut] = [this.visible, this.leftOut];
        return { sequence: this.durable, bytes: 1 };
      },
      stats: () => ({
        appliedSequence: this.visible,
        checkpointSequence: this.durable,
        docCount: 0,
        vectorCount: 0,
        termCount: 0,
        segmentCount: 0,
        diskBytes: 0,
        memoryBytes: 0,
      }),
      leftOut: () => this.leftOut,
      memoryBytes: () => 0,
      rest: async () => {
        this.rested += 1;
      },
      verify: async () => {
        this.verified += 1;
        if (this.damaged && !wipe) throw Object.assign(new Error('bad checksum'), { code: 'index_damaged' });
      },
      closeSoon: () => this.room?.resolve(),
      close: async () => {},
    };
  }
}

const noRows = new FrameBuilder().finish();

function page(sequence: number, bodyBytes = 10): ChangePage {
  const builder = new FrameBuilder();
  builder.setSequence(builder.append(rowKind.put, `key ${sequence}`, new Uint8Array(bodyBytes)), sequence);
  return { firstSequence: sequence, lastSequence: sequence, frame: builder.finish() };
}

describe('an index applier', () => {
  test('knows what was left out from the checkpoint at which it opens again', async () => {
    const bench = new Bench(2);
    const damaged = { key: 'key 3', ordinal: 9, reason: 'does not match' };
    bench.feed.push({ ...page(3), damaged: [damaged] });
    await settle();
    expect([bench.applier.state, bench.applier.isWhole, bench.leftOut]).toEqual(['live', false, [9]]);
    await bench.applier.checkpoint(new AbortController().signal);
    bench.failNextApply = new Error('no memory');
    bench.write();
    await bench.clock.advance(1_000);
    expect([bench.failures.length, bench.applier.state, bench.applier.isWhole]).toEqual([1, 'live', false]);
    const mending = new FrameBuilder();
    mending.setOrdinal(mending.append(rowKind.put, 'key 3', new Uint8Array(10)), 9);
    const written = { firstSequence: 5, lastSequence: 5, frame: mending.finish() };
    bench.feed.push(written);
    bench.applier.offer(written);
    await bench.applier.waitFor(5);
    expect([bench.applier.isWhole, bench.leftOut]).toEqual([true, []]);
    await bench.applier.close();
  });

  test('reads what was written before it, then goes live', async () => {
    const bench = new Bench(3);
    await settle();
    expect(bench.applied).toEqual([1, 2, 3]);
    expect(bench.applier.state).toBe('live');
    expect(bench.visible).toBe(3);
    await bench.applier.close();
  });

  test('shows rows at once when somebody waits, and only after the delay when nobody does', async () => {
    const bench = new Bench();
    await settle();
    bench.write();
    await settle();
    expect(bench.visible).toBe(0);
    await bench.clock.advance(bounds.visibilityMs);
    expect(bench.visible).toBe(1);
    bench.write();
    await bench.applier.waitFor(2);
    expect(bench.visible).toBe(2);
    await bench.applier.close();
  });

  test('commits without being asked when enough bytes wait', async () => {
    const bench = new Bench();
    await settle();
    bench.write(bounds.visibilityBytes);
    await settle();
    expect(bench.visible).toBe(1);
    await bench.applier.close();
  });

  test('leaves the queue for the change feed when too much is offered, and misses nothing', async () => {
    const bench = new Bench();
    await settle();
    for (let count = 0; count < 20; count += 1) bench.write(200);
    await bench.applier.waitFor(20);
    expect(bench.applied).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
    await settle();
    expect(bench.applier.state).toBe('live');
    await bench.applier.close();
  });

  test('joins small writes that wait into one native call', async () => {
    const bench = new Bench();
    await settle();
    for (let count = 0; count < 6; count += 1) bench.write();
    await bench.applier.waitFor(6);
    expect(bench.applied).toEqual([1, 2, 3, 4, 5, 6]);
    expect(bench.calls).toBeLessThanOrEqual(2);
    await bench.applier.close();
  });

  test('small writes that nobody waits for are gathered for a moment', async () => {
    const bench = new Bench(0, false, { options: { gatherMs: 20 } });
    await settle();
    for (let count = 0; count < 5; count += 1) {
      bench.write();
      await bench.clock.advance(3);
    }
    expect(bench.calls).toBe(0);
    await bench.clock.advance(5);
    expect(bench.calls).toBe(1);
    expect(bench.applied).toEqual([1, 2, 3, 4, 5]);
    await bench.applier.close();
  });

  test('gathering ends when somebody waits, and does not hold up what others have waited for', async () => {
    const bench = new Bench(0, false, { options: { gatherMs: 20 } });
    await settle();
    bench.write();
    await bench.applier.waitFor(1);
    expect(bench.visible).toBe(1);
    const waited = bench.applier.waitFor(3);
    bench.write();
    await settle();
    expect(bench.calls).toBe(1);
    bench.write();
    await waited;
    expect(bench.visible).toBe(3);
    expect(bench.clock.monotonicMs()).toBe(0);
    await bench.applier.close();
  });

  test('gathered rows are shown within the delay while more keep coming', async () => {
    const bench = new Bench(0, false, { options: { gatherMs: 20, visibilityBytes: 1_000_000 } });
    await settle();
    for (let count = 0; count < 50; count += 1) {
      bench.write();
      await bench.clock.advance(5);
    }
    expect(bench.visible).toBeGreaterThan(30);
    expect(bench.commits).toBe(1);
    expect(bench.calls).toBeLessThanOrEqual(13);
    await bench.applier.close();
  });

  test('a row is shown within the delay from when it was written, not from when it was taken', async () => {
    const bench = new Bench(0, false, { options: { gatherMs: 20 } });
    await settle();
    bench.write();
    await bench.clock.advance(bounds.visibilityMs - 1);
    expect(bench.visible).toBe(0);
    await bench.clock.advance(1);
    expect(bench.visible).toBe(1);
    await bench.applier.close();
  });

  test('a write that is worth a call of its own is not held back', async () => {
    const bench = new Bench(0, false, { options: { gatherMs: 20 } });
    await settle();
    bench.write();
    bench.write(smallPageBytes);
    await settle();
    expect(bench.applied).toEqual([1, 2]);
    await bench.applier.close();
  });

  test('a gap in what is offered is filled from the feed', async () => {
    const bench = new Bench();
    await settle();
    bench.feed.push(page(1), page(2));
    bench.write();
    await bench.applier.waitFor(3);
    expect(bench.applied).toEqual([1, 2, 3]);
    await bench.applier.close();
  });

  test('after a failure it starts again from its checkpoint, and waiters still get their rows', async () => {
    const bench = new Bench();
    await settle();
    bench.failNextApply = new Error('out of luck');
    bench.write();
    const waited = bench.applier.waitFor(1);
    await settle();
    expect(bench.applier.state).toBe('failed');
    await bench.clock.advance(1_000);
    await waited;
    expect(bench.visible).toBe(1);
    expect(bench.wipes).toEqual([false, false]);
    await bench.applier.close();
  });

  test('what the machine lacks is waited for, however often: the index is not wiped for it', async () => {
    const bench = new Bench(2);
    await settle();
    bench.failApply = new ServiceError('insufficient_storage', 'the disk is full');
    bench.write();
    for (let attempt = 0; attempt < 8; attempt += 1) await bench.clock.advance(30_000);
    expect(bench.failures.length).toBeGreaterThan(5);
    bench.failApply = undefined;
    await bench.clock.advance(30_000);
    expect([bench.wipes.includes(true), bench.visible]).toEqual([false, 3]);
    await bench.applier.close();
  });

  test('an index that fails again and again is wiped', async () => {
    const bench = new Bench(2);
    await settle();
    bench.failApply = new Error('what cannot be');
    bench.write();
    for (let attempt = 0; attempt < 4; attempt += 1) await bench.clock.advance(30_000);
    expect(bench.wipes.includes(true)).toBe(true);
    bench.failApply = undefined;
    await bench.clock.advance(30_000);
    expect(bench.visible).toBe(3);
    await bench.applier.close();
  });

  test('a fault in what hears of a failure does not end it', async () => {
    const bench = new Bench();
    await settle();
    bench.failNextApply = new Error('out of luck');
    bench.listenerFails = true;
    bench.write();
    const waited = bench.applier.waitFor(1);
    await settle();
    await bench.clock.advance(1_000);
    await waited;
    expect(bench.visible).toBe(1);
    expect(bench.failures).toHaveLength(2);
    await bench.applier.close();
  });

  test('a damaged index is wiped and built from the documents without waiting', async () => {
    const bench = new Bench(2);
    await settle();
    bench.failNextApply = Object.assign(new Error('bad checksum'), { code: 'index_damaged' });
    bench.write();
    await bench.applier.waitFor(3);
    expect(bench.wipes).toEqual([false, true]);
    expect(bench.applied.slice(-3)).toEqual([1, 2, 3]);
    await bench.applier.close();
  });

  test('an index of another format is built from the documents, which is told, and is no failure', async () => {
    const bench = new Bench();
    bench.write();
    bench.failNextApply = Object.assign(new Error('another format'), { code: 'index_incompatible' });
    await bench.applier.waitFor(1);
    expect(bench.wipes).toEqual([false, true]);
    expect([bench.rebuilds, bench.failures]).toEqual([['outdated'], []]);
    await bench.applier.close();
  });

  test('files that lie damaged are found after the first queries, and the index is rebuilt', async () => {
    const bench = new Bench(2, true);
    await bench.clock.advance(bounds.verifyDelayMs - 1);
    expect([bench.applier.state, bench.verified]).toEqual(['live', 0]);
    await bench.clock.advance(1);
    await bench.applier.waitFor(2);
    expect(bench.wipes).toEqual([false, true]);
    expect(bench.applied).toEqual([1, 2]);
    await bench.applier.close();
  });

  test('a look for damage that is asked for finds it at once, and a sound index is not read again and again', async () => {
    const { signal } = new AbortController();
    const damaged = new Bench(3, true);
    await settle();
    expect(await damaged.applier.lookForDamage(signal)).toBe(true);
    await settle();
    expect([damaged.wipes, damaged.visible]).toEqual([[false, true], 3]);
    await damaged.applier.close();
    const sound = new Bench(3);
    await settle();
    for (let looks = 0; looks < 5; looks += 1) expect(await sound.applier.lookForDamage(signal)).toBe(false);
    expect(sound.verified).toBe(1);
    await sound.clock.advance(60_000);
    expect([await sound.applier.lookForDamage(signal), sound.verified]).toEqual([false, 2]);
    await sound.applier.close();
  });

  test('searches that fail over sound files have it built again, once, and a single failure does not', async () => {
    let rebuilds = 1;
    const { signal } = new AbortController();
    const bench = new Bench(3, false, { mayDoubt: () => rebuilds-- > 0 });
    await settle();
    expect(await bench.applier.searchFailed(signal)).toBe(true);
    expect([bench.wipes, bench.verified]).toEqual([[false], 1]);
    expect(await bench.applier.searchFailed(signal)).toBe(true);
    await settle();
    expect([bench.wipes, bench.visible, bench.applier.state]).toEqual([[false, true], 3, 'live']);
    const again: boolean[] = [];
    for (let failures = 0; failures < 4; failures += 1) again.push(await bench.applier.searchFailed(signal));
    expect(again).toEqual([true, false, false, false]);
    await settle();
    expect(bench.wipes).toEqual([false, true]);
    await bench.applier.close();
  });

  test('rows of others move its sequence without work, and let the feed be forgotten', async () => {
    const bench = new Bench(1);
    await bench.clock.advance(bounds.checkpointMs + 2 * bounds.writerIdleMs);
    const { calls, commits } = bench;
    const pending = bench.clock.pending;
    for (let count = 0; count < 5; count += 1) bench.writeOther();
    await bench.applier.waitFor(6);
    expect(bench.applier.checkpointedSequence).toBe(6);
    expect([bench.calls, bench.commits, bench.clock.pending]).toEqual([calls, commits, pending]);
    bench.write();
    expect(bench.applier.checkpointedSequence).toBe(6);
    await bench.applier.waitFor(7);
    expect(bench.applied).toEqual([1, 7]);
    await bench.applier.close();
  });

  test('rows of others keep their place among its own, and the next start begins behind them', async () => {
    const bench = new Bench();
    await settle();
    bench.write();
    bench.writeOther();
    bench.write();
    bench.writeOther();
    await bench.applier.waitFor(4);
    expect(bench.applied).toEqual([1, 3]);
    expect(bench.applier.checkpointedSequence).toBe(0);
    bench.writeOther();
    await bench.applier.close();
    expect([bench.visible, bench.durable]).toEqual([5, 5]);
  });

  test('pages of the feed without rows cost no native call', async () => {
    const bench = new Bench();
    for (let count = 0; count < 3; count += 1) bench.writeOther();
    await settle();
    expect(bench.applier.state).toBe('live');
    expect([bench.calls, bench.commits, bench.applier.progress.published]).toEqual([0, 0, 3]);
    await bench.applier.close();
  });

  test('is overloaded by a backlog, and stays so until it has caught up with what it dropped', async () => {
    const bench = new Bench();
    await settle();
    expect(bench.applier.isOverloaded(500)).toBe(false);
    for (let count = 0; count < 3; count += 1) bench.write(200);
    expect(bench.applier.isOverloaded(500)).toBe(true);
    expect([bench.applier.isOverloaded(5_000), bench.applier.isOverloaded(5_000, 500)]).toEqual([false, true]);
    for (let count = 0; count < 10; count += 1) bench.write(200);
    expect(bench.applier.state).toBe('catching_up');
    expect([bench.applier.isOverloaded(500), bench.applier.isServing]).toEqual([true, true]);
    await bench.applier.waitFor(13);
    await settle();
    expect(bench.applier.isOverloaded(500)).toBe(false);
    await bench.applier.close();
  });

  test('checkpoints after its interval, and when it is closed', async () => {
    const bench = new Bench();
    await settle();
    bench.write();
    await bench.clock.advance(bounds.checkpointMs);
    expect(bench.durable).toBe(1);
    bench.write();
    await settle();
    await bench.applier.close();
    expect(bench.durable).toBe(2);
  });

  describe('whose checkpoint cannot be written', () => {
    const full = new UnwrittenCheckpointError('the disk is full');
    const failing = async (written = 1) => {
      const bench = new Bench();
      await settle();
      bench.failCheckpoint = full;
      for (let count = 0; count < written; count += 1) bench.write();
      await bench.clock.advance(bounds.checkpointMs);
      expect(bench.unwritten[0]).toBe(1);
      return bench;
    };

    test('stays open, takes rows, says so, and tries again with longer and longer pauses', async () => {
      const bench = await failing();
      expect(bench.applier.report()).toMatchObject({ state: 'live', unwritten: 'the disk is full', checkpointed: 0 });
      bench.write();
      await bench.applier.waitFor(2);
      expect([bench.visible, bench.durable, bench.wipes, bench.failures]).toEqual([2, 0, [false], []]);
      // 200 ms, 400, 800, ... and then every 30 seconds.
      await bench.clock.advance(51_000);
      expect(bench.unwritten).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
      await bench.clock.advance(60_000);
      expect(bench.unwritten.length).toBe(11);
      bench.failCheckpoint = undefined;
      await bench.clock.advance(30_000);
      expect(bench.durable).toBe(2);
      expect(bench.applier.report()).toMatchObject({ state: 'live', unwritten: undefined, checkpointed: 2 });
      await bench.applier.close();
    });

    test('rests between its attempts, and what asks for a checkpoint is told and not left to wait', async () => {
      const bench = await failing();
      await bench.clock.advance(60_000);
      const attempts = bench.unwritten.length;
      await settle();
      expect([bench.unwritten.length, bench.clock.pending]).toEqual([attempts, 1]);
      await bench.applier.checkpoint(new AbortController().signal);
      expect(bench.unwritten.length).toBe(attempts + 1);
      bench.failCheckpoint = undefined;
      await bench.applier.checkpoint(new AbortController().signal);
      expect(bench.applier.checkpointedSequence).toBe(1);
      await bench.applier.close();
    });

    test('takes no more than it may hold: what comes then waits, holds up writes, and is read once there is room', async () => {
      const bench = await failing();
      for (let count = 0; count < 20; count += 1) {
        bench.write(1_000);
        await settle();
      }
      await bench.clock.advance(30_000);
      const { applied } = bench.applier.report();
      expect([applied < 15, applied > 8, bench.visible]).toEqual([true, true, applied]);
      expect([bench.applier.isOverloaded(500), bench.applier.isServing]).toEqual([true, true]);
      bench.write(1_000);
      const kept = bench.applier.whenKeepsUp(500, Number.POSITIVE_INFINITY, new AbortController().signal);
      const pending = bench.clock.pending;
      await bench.clock.advance(90_000);
      expect([bench.applier.report().applied, bench.wipes, bench.clock.pending]).toEqual([applied, [false], pending]);
      bench.failCheckpoint = undefined;
      await bench.clock.advance(30_000);
      expect([await kept, bench.visible, bench.applied]).toEqual([
        true,
        22,
        Array.from({ length: 22 }, (_, i) => i + 1),
      ]);
      await bench.applier.close();
      expect(bench.durable).toBe(22);
    });

    test('is closed without one at its end, and loses nothing that the feed does not have', async () => {
      const bench = await failing(3);
      await bench.applier.close();
      expect([bench.durable, bench.applier.checkpointedSequence, bench.failures]).toEqual([0, 0, []]);
    });
  });

  test('gives the writer back when nothing happens, and takes rows again afterwards', async () => {
    const bench = new Bench(1);
    // It does not wait for the checkpoint, and is given back once.
    await bench.clock.advance(2 * bounds.writerIdleMs);
    expect([bench.rested, bench.durable]).toEqual([1, 0]);
    await bench.clock.advance(bounds.checkpointMs + 2 * bounds.writerIdleMs);
    expect([bench.rested, bench.durable]).toEqual([1, 1]);
    bench.write();
    await bench.applier.waitFor(2);
    expect(bench.visible).toBe(2);
    await bench.clock.advance(2 * bounds.writerIdleMs);
    expect(bench.rested).toBe(2);
    await bench.applier.close();
  });

  test('takes what was written just before its end, so that nothing is replayed at the next start', async () => {
    const bench = new Bench();
    await settle();
    const written = [bench.write(), bench.write()];
    await bench.applier.close();
    expect([bench.visible, bench.durable, bench.applier.checkpointedSequence]).toEqual([2, 2, written.length]);
  });

  test('does not wait at its end until the index has room for rows', async () => {
    const bench = new Bench();
    await settle();
    bench.room = Promise.withResolvers();
    bench.write();
    await settle();
    expect(bench.applied).toEqual([]);
    await bench.applier.close();
    expect([bench.applied, bench.durable]).toEqual([[1], 1]);
  });

  test('leaves a long backlog to the next start', async () => {
    const bench = new Bench(100);
    await bench.applier.close();
    expect(bench.durable).toBeGreaterThan(0);
    expect(bench.durable).toBeLessThan(20);
  });

  test('shows what was applied at once when others need its turn, and puts off until it rests what is to be done then', async () => {
    const writers = new WriterBudget(1);
    const bench = new Bench(0, false, { writers: writers });
    await settle();
    bench.write();
    await settle();
    expect(bench.applier.progress.published).toBe(0);
    writers.use({ releaseWriterSoon: () => {} });
    await settle();
    expect([bench.applier.progress.published, bench.rested]).toEqual([1, 0]);
    await bench.clock.advance(2 * bounds.writerIdleMs);
    expect(bench.rested).toBe(1);
    await bench.applier.close();
  });

  test('a waiter of a closed index is told', async () => {
    const bench = new Bench();
    await settle();
    const waited = bench.applier.waitFor(99);
    const closed = bench.applier.close();
    await expect(waited).rejects.toThrow('closed');
    await closed;
    await expect(bench.applier.waitFor(99)).rejects.toThrow('closed');
  });

  test('a wait that is over leaves nothing behind at its signal', async () => {
    const bench = new Bench();
    await settle();
    const { signal } = new AbortController();
    const waits = [bench.applier.waitFor(1, signal), bench.applier.whenReplayed(signal)];
    bench.write();
    await Promise.all(waits);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    await bench.applier.close();
  });
});
