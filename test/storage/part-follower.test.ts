import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { BackfillLane } from '../../src/enrichment/following/backfill-lane.ts';
import { PartFollower } from '../../src/enrichment/following/part-follower.ts';
import { vectorPart } from '../../src/enrichment/part-batch.ts';
import type { PartDefinition } from '../../src/enrichment/part-definition.ts';
import type { Embeddings } from '../../src/inference/embeddings/embed-items.ts';
import { must } from '../../src/lib/assert.ts';
import { ServiceError } from '../../src/protocol/service-error.ts';
import type { RangeLog } from '../../src/replication/range-log.ts';
import type { Storage } from '../../src/storage/open-storage.ts';
import type { RangeReader } from '../../src/storage/reader/range-reader.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { readDense } from '../support/vectors/vector-part.ts';
import {
  createTable,
  type FrameContent,
  frameOf,
  group,
  openTestStorage,
  temporaryDirectory,
} from './storage-fixture.ts';

setDefaultTimeout(120_000);

/** An embedder whose vectors are the lengths of texts, and which fails as it is told to. */
class Embedder {
  readonly batches: string[][] = [];
  fault: (texts: readonly string[]) => ServiceError | undefined = () => undefined;
  /** Texts that are refused, each by itself. */
  refused = new Set<string>();

  readonly embedder = {
    fingerprint: 'test',
    embed: async (texts: readonly string[]): Promise<Embeddings> => {
      await Promise.resolve();
      this.batches.push([...texts]);
      const fault = this.fault(texts);
      if (fault) throw fault;
      const error = new ServiceError('context_length_exceeded', 'too long');
      const vectors = texts.map((text) => (this.refused.has(text) ? undefined : Float32Array.of(numberOf(text))));
      const faults = texts.flatMap((text, index) => (this.refused.has(text) ? [{ index, error }] : []));
      return { model: 'm', dimension: 1, vectors, tokens: 1, faults };
    },
  };

  get texts(): string[] {
    return this.batches.flat();
  }
}

function numberOf(text: string): number {
  return Bun.hash.crc32(text) % 1_000_003;
}

const ranges: FollowedRange[] = [];
afterEach(async () => {
  for (const followed of ranges.splice(0)) await followed.end();
});

/** A range of documents with a member "t", and a follower that makes part 1 of them. */
class FollowedRange {
  readonly embedder = new Embedder();
  readonly clock = new FakeClock();
  readonly #directory = temporaryDirectory();
  storage!: Storage;
  range!: RangeReader;
  follower: PartFollower | undefined;
  fingerprint = 'f';
  #lives = 0;

  static async make(): Promise<FollowedRange> {
    const followed = new FollowedRange();
    ranges.push(followed);
    followed.storage = await openTestStorage(join(followed.#directory.path, '0'));
    const table = await createTable(followed.storage, 'things', 1, ['v']);
    followed.range = await followed.storage.openRange(must(table.ranges[0], 'a range').rangeId);
    return followed;
  }

  follow(): PartFollower {
    const definition: PartDefinition = {
      partId: 1,
      source: {
        field: '$.t',
        template: undefined,
        embedder: {} as PartDefinition['source']['embedder'],
        together: false,
      },
      dimension: 1,
      embedder: () => this.embedder.embedder,
      cut: () => Promise.reject(new Error('no model cuts')),
      vectorFingerprint: this.fingerprint,
      fingerprintOfSource: this.fingerprint,
      fingerprint: this.fingerprint,
    };
    const log = {
      append: async (request: Parameters<RangeLog['append']>[0]) => {
        const applied = await this.storage.append(request);
        for (const each of applied) this.range.noteApplied(each);
        return applied;
      },
    };
    const deps = {
      log: log as RangeLog,
      clock: this.clock,
      lane: new BackfillLane(2),
      templates: { render: () => [], resolve: undefined },
      onFailed: () => {},
      onProduced: () => {},
    };
    const range = { stored: this.range, head: () => this.range.info().head, whenKeepsUp: async () => {} };
    this.follower = new PartFollower(deps, range, vectorPart(definition));
    return this.follower;
  }

  async write(content: FrameContent): Promise<void> {
    const writes = [{ rangeId: this.range.rangeId, frame: frameOf(content) }];
    const [applied] = await this.storage.append(group(writes, { timeMs: this.clock.nowMs() }));
    this.range.noteApplied(must(applied, 'an answer'));
    this.follower?.wake();
  }

  /** Resolves when the follower has nothing to do that does not wait for the clock. */
  async settled(): Promise<void> {
    const follower = must(this.follower, 'a follower');
    while (follower.report().blocker === undefined) {
      const { head } = this.range.info();
      if (follower.report().coveredThrough >= head) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Lets minutes pass until something holds. */
  async minutesUntil(holds: () => boolean): Promise<void> {
    while (!holds()) {
      await this.clock.advance(60_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Goes on from the files as they lie there, without a clean end. */
  async crash(): Promise<void> {
    const [from, to] = [this.#lives, this.#lives + 1].map((life) => join(this.#directory.path, String(life)));
    cpSync(must(from, 'a life'), must(to, 'a life'), { recursive: true });
    this.#lives += 1;
    const { rangeId } = this.range;
    await this.follower?.close();
    await this.storage.close();
    this.storage = await openTestStorage(must(to, 'a life'));
    this.range = await this.storage.openRange(rangeId);
    this.follow();
  }

  /** Key -> value of the part that the document has. */
  parts(): Record<string, number> {
    const bounds = { fromKey: '', fromInclusive: true, toKey: null, toInclusive: true };
    const { documents } = this.range.documents.page(bounds, 10_000, 2 ** 30);
    const { found } = this.range.parts.read(
      documents.map(({ ordinal }) => ordinal),
      [1],
    );
    return Object.fromEntries(
      documents.flatMap(({ ordinal, key }) => {
        const body = found.get(ordinal)?.get(1);
        return body ? [[key, must(readDense(body)[0], 'a value')]] : [];
      }),
    );
  }

  async end(): Promise<void> {
    await this.follower?.close();
    await this.storage.close();
    this.#directory[Symbol.dispose]();
  }
}

const document = (t: unknown) => ({ t });
const many = (count: number, prefix = 'old') =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${prefix}${n}`, document(`${prefix} ${n}`)]));
const outage = () => new ServiceError('upstream_failed', 'the embedder is down', { retryAfterMs: 1 });

describe('a follower', () => {
  test('makes what the documents say, whatever is written, killed and refused meanwhile', async () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const text = fc.oneof(fc.constantFrom('x', 'y', 'z', 'x y'), fc.constant(''), fc.constant(null), fc.constant(7));
    const operation = fc.oneof(
      { weight: 6, arbitrary: fc.record({ kind: fc.constant('put' as const), key, text }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('delete' as const), key }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('settle' as const) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 40 }), fc.nat(20), async (operations, startAt) => {
        const followed = await FollowedRange.make();
        const model = new Map<string, unknown>();
        for (const [at, each] of operations.entries()) {
          if (at === startAt) followed.follow();
          if (each.kind === 'put') {
            model.set(each.key, each.text);
            await followed.write({ puts: { [each.key]: document(each.text) } });
          } else if (each.kind === 'delete') {
            if (model.delete(each.key)) await followed.write({ deletes: [each.key] });
          } else if (followed.follower && each.kind === 'settle') await followed.settled();
          else if (followed.follower) await followed.crash();
        }
        if (!followed.follower) followed.follow();
        await followed.settled();
        const texts = [...model].filter(([, held]) => typeof held === 'string' && held !== '') as [string, string][];
        expect(followed.parts()).toEqual(Object.fromEntries(texts.map(([name, held]) => [name, numberOf(held)])));
        const failed = [...model.values()].filter((held) => held === 7).length;
        expect(followed.follower?.report()).toMatchObject({ failed, retrying: 0, backfillProgress: 1 });
        await followed.end();
        ranges.splice(ranges.indexOf(followed), 1);
      }),
      { numRuns: 25 },
    );
  });

  test('embeds a document that was there before it once, over kills, but for the batch under way', async () => {
    const followed = await FollowedRange.make();
    await followed.write({ puts: many(1_000) });
    followed.follow();
    const kills = 3;
    for (let kill = 1; kill <= kills; kill += 1) {
      while (followed.embedder.batches.length < 3 * kill) await new Promise((resolve) => setImmediate(resolve));
      await followed.crash();
    }
    await followed.settled();
    expect(Object.keys(followed.parts())).toHaveLength(1_000);
    expect(followed.embedder.texts.length).toBeLessThanOrEqual(1_000 + kills * 64);
  });

  test('can be closed as soon as it was opened', async () => {
    const followed = await FollowedRange.make();
    await followed.follow().close();
  });

  test('takes what was just written before what was there before it', async () => {
    const followed = await FollowedRange.make();
    await followed.write({ puts: many(1_000) });
    followed.follow();
    while (followed.embedder.batches.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const before = followed.embedder.batches.length;
    await followed.write({ puts: { new: document('just written') } });
    await must(followed.follower, 'a follower').waitFor(followed.range.info().head);
    const at = followed.embedder.batches.findIndex((texts) => texts.includes('just written'));
    expect(at - before).toBeLessThanOrEqual(2);
    expect(followed.parts().new).toBe(numberOf('just written'));
    await followed.settled();
  });

  test('waits while its embedder is down, notes nothing for the documents, and goes on by itself', async () => {
    const followed = await FollowedRange.make();
    followed.embedder.fault = outage;
    const follower = followed.follow();
    await followed.write({ puts: many(5) });
    await followed.settled();
    expect(follower.report()).toMatchObject({ failed: 0, retrying: 0, blocker: { code: 'upstream_failed' } });
    expect(follower.isAtRest).toBe(false);
    expect(followed.range.notes.within('f/', 10)).toEqual([]);
    followed.embedder.fault = () => undefined;
    await followed.minutesUntil(() => follower.report().blocker === undefined);
    await followed.settled();
    expect(Object.keys(followed.parts())).toHaveLength(5);
  });

  test('leaves the others alone when one text is refused, tries it a few times, and again when it has changed', async () => {
    const followed = await FollowedRange.make();
    followed.embedder.refused.add('bad');
    const follower = followed.follow();
    await followed.write({ puts: { good: document('good'), bad: document('bad') } });
    await followed.settled();
    expect(Object.keys(followed.parts())).toEqual(['good']);
    expect(follower.report()).toMatchObject({ retrying: 1, failed: 0 });
    await followed.minutesUntil(() => follower.report().failed === 1);
    expect(follower.report().retrying).toBe(0);
    expect(followed.embedder.texts.filter((text) => text === 'bad')).toHaveLength(4);
    await followed.crash();
    expect(followed.follower?.report()).toMatchObject({ retrying: 0, failed: 1 });
    await followed.write({ puts: { bad: document('better') } });
    await followed.settled();
    expect(followed.follower?.report()).toMatchObject({ retrying: 0, failed: 0 });
    expect(followed.parts().bad).toBe(numberOf('better'));
  });

  test('tries a text again within minutes, however far the wall clock is put back or forward meanwhile', async () => {
    const followed = await FollowedRange.make();
    const follower = followed.follow();
    const dayMs = 24 * 3_600_000;
    for (const days of [-1, -365, 365]) {
      const text = `bad ${days}`;
      const asked = () => followed.embedder.texts.filter((each) => each === text).length;
      followed.embedder.refused.add(text);
      await followed.write({ puts: { bad: document(text) } });
      await followed.settled();
      const before = asked();
      followed.embedder.refused.clear();
      followed.clock.jump(days * dayMs);
      await followed.clock.advance(5 * 60_000);
      expect(asked()).toBe(before + 1);
      while (follower.report().retrying > 0) await new Promise((resolve) => setImmediate(resolve));
      expect(followed.parts().bad).toBe(numberOf(text));
    }
  });

  test('tries a text again after the embedder was down at its time', async () => {
    const followed = await FollowedRange.make();
    followed.embedder.refused.add('bad');
    const follower = followed.follow();
    await followed.write({ puts: { bad: document('bad') } });
    await followed.settled();
    followed.embedder.refused.clear();
    followed.embedder.fault = outage;
    await followed.minutesUntil(() => follower.report().blocker !== undefined);
    followed.embedder.fault = () => undefined;
    await followed.minutesUntil(() => follower.report().retrying === 0);
    expect(follower.report()).toMatchObject({ retrying: 0, failed: 0, blocker: undefined });
    expect(followed.parts().bad).toBe(numberOf('bad'));
  });

  test('serves a retry that is requested during its close, and refuses one that is requested after it', async () => {
    const followed = await FollowedRange.make();
    const follower = followed.follow();
    followed.embedder.refused.add('bad');
    await followed.write({ puts: { bad: document('bad') } });
    await followed.settled();
    followed.embedder.fault = outage;
    await followed.write({ puts: { other: document('other') } });
    await followed.settled();
    const asked = follower.retryFailed({ most: 10 });
    await follower.close();
    expect(await asked).toEqual({ count: 1, nextKey: undefined });
    await expect(follower.retryFailed({ most: 10 })).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('sends a batch that is refused for one text again, text by text', async () => {
    const followed = await FollowedRange.make();
    const refusal = new ServiceError('invalid_request', 'one of the texts is not to our taste');
    followed.embedder.fault = (texts) => (texts.includes('bad') ? refusal : undefined);
    const follower = followed.follow();
    await followed.write({ puts: { a: document('amber'), b: document('bad'), c: document('cedar') } });
    await followed.settled();
    expect(Object.keys(followed.parts())).toEqual(['a', 'c']);
    expect(follower.report()).toMatchObject({ retrying: 1, blocker: undefined });
  });

  test('embeds equal texts once, and looks at everything again with another fingerprint', async () => {
    const followed = await FollowedRange.make();
    await followed.write({ puts: { a: document('same'), b: document('same'), c: document('other') } });
    followed.follow();
    await followed.settled();
    expect(followed.embedder.texts.sort()).toEqual(['other', 'same']);
    followed.fingerprint = 'g';
    await followed.crash();
    await followed.settled();
    expect(followed.embedder.texts.sort()).toEqual(['other', 'other', 'same', 'same']);
  });
});
