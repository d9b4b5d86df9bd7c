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
import { readDense } from '../../src/lib/parts/dense-part.ts';
import { ServiceError } from '../../src/protocol/service-error.ts';
import type { RangeLog } from '../../src/replication/range-log.ts';
import type { Storage } from '../../src/storage/open-storage.ts';
import type { RangeReader } from '../../src/storage/reader/range-reader.ts';
import { FakeClock } from '../support/fake-clock.ts';
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

const places: Place[] = [];
afterEach(async () => {
  for (const place of places.splice(0)) await place.end();
});

/** A range of documents with a member "t", and a follower that makes part 1 of them. */
class Place {
  readonly embedder = new Embedder();
  readonly clock = new FakeClock();
  readonly #directory = temporaryDirectory();
  storage!: Storage;
  range!: RangeReader;
  follower: PartFollower | undefined;
  fingerprint = 'f';
  #lives = 0;

  static async make(): Promise<Place> {
    const place = new Place();
    places.push(place);
    place.storage = await openTestStorage(join(place.#directory.path, '0'));
    const table = await createTable(place.storage, 'things', 1, ['v']);
    place.range = await place.storage.openRange(must(table.ranges[0], 'a range').rangeId);
    return place;
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
        const place = await Place.make();
        const model = new Map<string, unknown>();
        for (const [at, each] of operations.entries()) {
          if (at === startAt) place.follow();
          if (each.kind === 'put') {
            model.set(each.key, each.text);
            await place.write({ puts: { [each.key]: document(each.text) } });
          } else if (each.kind === 'delete') {
            if (model.delete(each.key)) await place.write({ deletes: [each.key] });
          } else if (place.follower && each.kind === 'settle') await place.settled();
          else if (place.follower) await place.crash();
        }
        if (!place.follower) place.follow();
        await place.settled();
        const texts = [...model].filter(([, held]) => typeof held === 'string' && held !== '') as [string, string][];
        expect(place.parts()).toEqual(Object.fromEntries(texts.map(([name, held]) => [name, numberOf(held)])));
        const failed = [...model.values()].filter((held) => held === 7).length;
        expect(place.follower?.report()).toMatchObject({ failed, retrying: 0, backfillProgress: 1 });
        await place.end();
        places.splice(places.indexOf(place), 1);
      }),
      { numRuns: 25 },
    );
  });

  test('embeds a document that was there before it once, over kills, but for the batch under way', async () => {
    const place = await Place.make();
    await place.write({ puts: many(1_000) });
    place.follow();
    const kills = 3;
    for (let kill = 1; kill <= kills; kill += 1) {
      while (place.embedder.batches.length < 3 * kill) await new Promise((resolve) => setImmediate(resolve));
      await place.crash();
    }
    await place.settled();
    expect(Object.keys(place.parts())).toHaveLength(1_000);
    expect(place.embedder.texts.length).toBeLessThanOrEqual(1_000 + kills * 64);
  });

  test('can be closed as soon as it was opened', async () => {
    const place = await Place.make();
    await place.follow().close();
  });

  test('takes what was just written before what was there before it', async () => {
    const place = await Place.make();
    await place.write({ puts: many(1_000) });
    place.follow();
    while (place.embedder.batches.length === 0) await new Promise((resolve) => setImmediate(resolve));
    const before = place.embedder.batches.length;
    await place.write({ puts: { new: document('just written') } });
    await must(place.follower, 'a follower').waitFor(place.range.info().head);
    const at = place.embedder.batches.findIndex((texts) => texts.includes('just written'));
    expect(at - before).toBeLessThanOrEqual(2);
    expect(place.parts().new).toBe(numberOf('just written'));
    await place.settled();
  });

  test('waits while its embedder is down, notes nothing for the documents, and goes on by itself', async () => {
    const place = await Place.make();
    place.embedder.fault = outage;
    const follower = place.follow();
    await place.write({ puts: many(5) });
    await place.settled();
    expect(follower.report()).toMatchObject({ failed: 0, retrying: 0, blocker: { code: 'upstream_failed' } });
    expect(follower.isAtRest).toBe(false);
    expect(place.range.notes.within('f/', 10)).toEqual([]);
    place.embedder.fault = () => undefined;
    await place.minutesUntil(() => follower.report().blocker === undefined);
    await place.settled();
    expect(Object.keys(place.parts())).toHaveLength(5);
  });

  test('leaves the others alone when one text is refused, tries it a few times, and again when it has changed', async () => {
    const place = await Place.make();
    place.embedder.refused.add('bad');
    const follower = place.follow();
    await place.write({ puts: { good: document('good'), bad: document('bad') } });
    await place.settled();
    expect(Object.keys(place.parts())).toEqual(['good']);
    expect(follower.report()).toMatchObject({ retrying: 1, failed: 0 });
    await place.minutesUntil(() => follower.report().failed === 1);
    expect(follower.report().retrying).toBe(0);
    expect(place.embedder.texts.filter((text) => text === 'bad')).toHaveLength(4);
    await place.crash();
    expect(place.follower?.report()).toMatchObject({ retrying: 0, failed: 1 });
    await place.write({ puts: { bad: document('better') } });
    await place.settled();
    expect(place.follower?.report()).toMatchObject({ retrying: 0, failed: 0 });
    expect(place.parts().bad).toBe(numberOf('better'));
  });

  test('sends a batch that is refused for one text again, text by text', async () => {
    const place = await Place.make();
    const refusal = new ServiceError('invalid_request', 'one of the texts is not to our taste');
    place.embedder.fault = (texts) => (texts.includes('bad') ? refusal : undefined);
    const follower = place.follow();
    await place.write({ puts: { a: document('amber'), b: document('bad'), c: document('cedar') } });
    await place.settled();
    expect(Object.keys(place.parts())).toEqual(['a', 'c']);
    expect(follower.report()).toMatchObject({ retrying: 1, blocker: undefined });
  });

  test('embeds equal texts once, and looks at everything again with another fingerprint', async () => {
    const place = await Place.make();
    await place.write({ puts: { a: document('same'), b: document('same'), c: document('other') } });
    place.follow();
    await place.settled();
    expect(place.embedder.texts.sort()).toEqual(['other', 'same']);
    place.fingerprint = 'g';
    await place.crash();
    await place.settled();
    expect(place.embedder.texts.sort()).toEqual(['other', 'other', 'same', 'same']);
  });
});
