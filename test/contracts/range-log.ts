import { describe, expect, test } from 'bun:test';
import { readFrame, rowKind } from '../../src/lib/document-frame.ts';
import type { RangeLog } from '../../src/replication/range-log.ts';
import type { AppliedWrite, EntryListener, RangeWrite } from '../../src/storage/write-request.ts';
import { frameOf, group } from '../storage/storage-fixture.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';

/** A log of an implementation, open, with three ranges or more. */
export interface OpenLog extends AsyncDisposable {
  log: RangeLog;
  rangeIds: readonly number[];
  /** The stored document as reads see it now. */
  document(rangeId: number, key: string): unknown;
}

type Entry = Parameters<EntryListener>[0];

/** The promises of every `RangeLog`; run by the tests of each implementation. */
export function rangeLogContract(open: () => Promise<OpenLog>): void {
  const put = (rangeId: number, key: string, document: object = { n: 1 }): RangeWrite => {
    return { rangeId, frame: frameOf({ puts: { [key]: document } }) };
  };
  const remove = (rangeId: number, key: string): RangeWrite => ({ rangeId, frame: frameOf({ deletes: [key] }) });
  const keysOf = ({ images }: AppliedWrite) => {
    if (!images) return [];
    const frame = readFrame(images.frame);
    return Array.from({ length: frame.rowCount }, (_, row) => [
      frame.kind(row),
      Buffer.from(frame.key(row)).toString(),
    ]);
  };

  describe('a range log', () => {
    test('answers in the order of the writes, when reads see what was written', async () => {
      await using opened = await open();
      const [first = 0, second = 0, third = 0] = opened.rangeIds;
      const applied = await opened.log.append(group([put(third, 'c'), put(first, 'a', { n: 2 }), put(second, 'b')]));
      expect(applied.map(({ rangeId }) => rangeId)).toEqual([third, first, second]);
      expect(applied.map(({ counts }) => counts.inserted)).toEqual([1, 1, 1]);
      expect(opened.document(first, 'a')).toEqual({ n: 2 });
      expect([opened.document(second, 'b'), opened.document(first, 'b')]).toEqual([{ n: 1 }, undefined]);
    });

    test('a request that fails has changed nothing in any range, and nobody hears of it', async () => {
      await using opened = await open();
      const [first = 0, second = 0] = opened.rangeIds;
      await opened.log.append(group([put(first, 'a')]));
      const heard: Entry[] = [];
      for (const rangeId of [first, second]) opened.log.subscribe(rangeId, (entry) => heard.push(entry));
      const readSet = [{ rangeId: first, key: 'a', version: 0 }];
      const failing = opened.log.append(group([put(first, 'a', { n: 9 }), put(second, 'b')], { readSet }));
      expect(await failing.catch((error) => error)).toMatchObject({ code: 'transaction_conflict' });
      expect([opened.document(first, 'a'), opened.document(second, 'b')]).toEqual([{ n: 1 }, undefined]);
      expect(heard).toEqual([]);
    });

    test('a subscriber hears of the entries of its range alone, before their append resolves', async () => {
      await using opened = await open();
      const [first = 0, second = 0] = opened.rangeIds;
      const heard: [string, unknown][] = [];
      opened.log.subscribe(first, (entry) => heard.push(['heard', keysOf(entry)]));
      await opened.log.append(group([put(second, 'b')]));
      await opened.log
        .append(group([put(first, 'a'), put(second, 'c')]))
        .then(() => heard.push(['answered', undefined]));
      await opened.log.append(group([remove(first, 'a')]));
      expect(heard).toEqual([
        ['heard', [[rowKind.put, 'a']]],
        ['answered', undefined],
        ['heard', [[rowKind.delete, 'a']]],
      ]);
    });

    test('what changes nothing is no entry', async () => {
      await using opened = await open();
      const [first = 0] = opened.rangeIds;
      const heard: Entry[] = [];
      opened.log.subscribe(first, (entry) => heard.push(entry));
      const [answer] = await opened.log.append(group([remove(first, 'absent')]));
      const [skipped] = await opened.log.append(
        group([{ rangeId: first, deleteIf: [{ key: 'absent', sequence: 1 }] }]),
      );
      expect([answer?.images, skipped?.images]).toEqual([undefined, undefined]);
      expect(heard).toEqual([]);
    });

    test('every subscriber hears of an entry; one that has ended its subscription does not', async () => {
      await using opened = await open();
      const [first = 0] = opened.rangeIds;
      const heard: string[] = [];
      const end = opened.log.subscribe(first, () => heard.push('first'));
      opened.log.subscribe(first, () => heard.push('second'));
      await opened.log.append(group([put(first, 'a')]));
      end();
      end();
      await opened.log.append(group([put(first, 'b')]));
      expect(heard).toEqual(['first', 'second', 'second']);
    });

    test('entries of concurrent requests come in the order of the log, without gaps, each once', async () => {
      await using opened = await open();
      const seed = runSeed();
      const random = new SeededRandom(seed);
      const heard = new Map<number, Entry[]>(opened.rangeIds.map((rangeId) => [rangeId, []]));
      for (const [rangeId, entries] of heard) opened.log.subscribe(rangeId, (entry) => entries.push(entry));
      const requests = Array.from({ length: 120 }, (_, n) => {
        const ranges = opened.rangeIds.filter(() => random.between(0, 2) > 0);
        return ranges.length === 0 ? [] : opened.log.append(group(ranges.map((rangeId) => put(rangeId, `k${n % 17}`))));
      });
      const answers = (await Promise.all(requests)).flat();
      for (const [rangeId, entries] of heard) {
        const ofRange = answers.filter((answer) => answer.rangeId === rangeId);
        const position = ({ header }: AppliedWrite) => header.index;
        expect({ seed, heard: entries.map(position) }).toEqual({
          seed,
          heard: ofRange.map(position).sort((left, right) => left - right),
        });
        for (const [at, { header, images }] of entries.entries()) {
          const before = entries[at - 1];
          if (!before) continue;
          expect({ seed, index: header.index }).toEqual({ seed, index: before.header.index + 1 });
          expect({ seed, first: images.firstSequence }).toEqual({ seed, first: before.images.lastSequence + 1 });
        }
      }
    });
  });
}
