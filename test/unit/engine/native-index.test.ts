import { afterEach, describe, expect, test } from 'bun:test';
import { nativeAddon } from '../../../src/engine/native-addon.ts';
import { NativeIndex } from '../../../src/engine/native-index.ts';
import { matchDocuments, queryIndexes } from '../../../src/engine/native-query.ts';
import { AssertionError } from '../../../src/lib/assert.ts';
import { FrameBuilder, rowKind, rowOrdinalIsNew } from '../../../src/lib/document-frame.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { numberOf } from '../../../src/query/execution/query-target.ts';

const encoder = new TextEncoder();
const open: NativeIndex[] = [];
const calm = new AbortController();

async function indexOf(documents: object[], firstOrdinal = 0): Promise<NativeIndex> {
  const options = {
    kind: 'full_text',
    name: 'text',
    incarnation: 1,
    partId: 1,
    memOnly: true,
    schema: undefined,
  } as const;
  const index = await NativeIndex.open('unused', options, false);
  open.push(index);
  await index.apply(frameOf(documents, firstOrdinal));
  await index.commit(documents.length);
  return index;
}

function frameOf(documents: object[], firstOrdinal = 0): Uint8Array {
  const builder = new FrameBuilder();
  for (const [i, document] of documents.entries()) {
    const row = builder.append(rowKind.put, `k${firstOrdinal + i}`, encoder.encode(JSON.stringify(document)));
    builder.setOrdinal(row, firstOrdinal + i);
    builder.setSequence(row, 2 ** 40 + i);
    builder.setFlags(row, rowOrdinalIsNew);
  }
  return builder.finish();
}

const planOf = (parts: object) => JSON.stringify({ limit: 10, offset: 0, ...parts });
const words = (text: string) => ({ query: { kind: 'match', field: 'title', text, operator: 'or' } });

afterEach(async () => {
  for (const index of open.splice(0)) await index.close();
});

describe('indexes through the native boundary', () => {
  test('hits come as numbers, five a hit', async () => {
    const index = await indexOf([{ title: 'a red fox' }, { title: 'whale' }, { title: 'fox, fox and fox' }]);
    const hits = await queryIndexes([index.handle], planOf(words('fox')), calm);
    const [, , , best, distance, ...second] = hits.numbers;
    expect([...hits.numbers.slice(0, 3)]).toEqual([0, 2, 2 ** 40 + 2]);
    expect([best, distance]).toEqual([hits.maxScore, Number.NaN]);
    expect([second.length, ...second.slice(0, 3)]).toEqual([5, 0, 0, 2 ** 40]);
    expect([hits.total, hits.totalIsExact, hits.sort, hits.profile]).toEqual([2, true, undefined, undefined]);
  });

  test('sort values and positions come as JSON, ranges by their place', async () => {
    const first = await indexOf([{ n: 1 }, { n: 3 }]);
    const second = await indexOf([{ n: 2.5 }, {}], 100);
    const plan = planOf({ query: { kind: 'match_all' }, sort: [{ field: 'n', desc: true }] });
    const hits = await queryIndexes([first.handle, second.handle], plan, calm);
    expect(JSON.parse(hits.sort ?? '')).toEqual([3, 2.5, 1, null].map((value) => [[value], expect.any(String)]));
    const numbersOf = (which: 'range' | 'ordinal') => [0, 1, 2, 3].map((at) => numberOf(hits, at, which));
    expect(numbersOf('range')).toEqual([0, 1, 0, 1]);
    expect(numbersOf('ordinal')).toEqual([1, 100, 0, 101]);
  });

  test('no hits are no numbers', async () => {
    const index = await indexOf([{ title: 'fox' }]);
    const hits = await queryIndexes([index.handle], planOf(words('bear')), calm);
    expect([hits.numbers.length, hits.total, hits.maxScore]).toEqual([0, 0, 0]);
  });

  test('what is cheap is answered at once, everything else is promised', async () => {
    const index = await indexOf([{ title: 'a red fox' }, { title: 'whale' }, { title: 'fox, fox and fox' }]);
    const ask = (plan: string) => nativeAddon().query([index.handle], [], plan, new Uint8Array(), 0, false);
    // A thread that the machine does not let run for a millisecond gives up.
    const tries = Array.from({ length: 100 }, () => ask(planOf(words('fox'))));
    const atOnce = tries.find((hits) => !(hits instanceof Promise)) ?? expect.unreachable();
    const promised = ask(`${planOf(words('fox'))}${' '.repeat(10_000)}`);
    expect(promised).toBeInstanceOf(Promise);
    const plain = async (hits: typeof atOnce) => ({ ...(await hits), numbers: [...(await hits).numbers] });
    expect(await plain(atOnce)).toEqual(await plain(promised));
    for (const plan of [{ query: { kind: 'wildcard', pattern: '*o*' } }, { sort: [{ field: 'title' }] }]) {
      expect(ask(planOf(plan))).toBeInstanceOf(Promise);
    }
  });

  test('a cancelled query answers or fails with query_timeout, and its number can be used again', async () => {
    const index = await indexOf(Array.from({ length: 50 }, () => ({ title: 'fox' })));
    const addon = nativeAddon();
    const plan = planOf({ query: { kind: 'wildcard', pattern: '*o*' } });
    const running = Promise.resolve(addon.query([index.handle], [], plan, new Uint8Array(), 77, false));
    addon.cancel(77);
    // It may have ended first; then it has answered.
    const outcome = await running.then(
      (hits) => hits.total,
      (error) => error.code,
    );
    expect([50, 'query_timeout']).toContain(outcome);
    addon.cancel(77);
    const again = await addon.query([index.handle], [], planOf(words('fox')), new Uint8Array(), 77, false);
    expect(again.total).toBe(50);
  });

  test('matchDocuments answers one byte a row', async () => {
    const frame = frameOf([{ title: 'red fox' }, { title: 'whale' }, { title: 'Foxes' }]);
    expect(await matchDocuments(null, planOf(words('fox')), frame)).toEqual(new Uint8Array([1, 0, 1]));
  });

  test('a closed index is a fault of ours, and closing waits for no query', async () => {
    const index = await indexOf([{ title: 'fox' }]);
    const running = queryIndexes([index.handle], planOf(words('fox')), calm);
    open.pop();
    await index.close();
    expect((await running).total).toBe(1);
    await expect(queryIndexes([index.handle], planOf(words('fox')), calm)).rejects.toBeInstanceOf(AssertionError);
    expect(() => index.stats()).toThrow(AssertionError);
  });

  test('a plan that is not understood is a fault of ours', async () => {
    const index = await indexOf([]);
    const failed = queryIndexes([index.handle], planOf({ nonsense: 1 }), calm);
    await expect(failed).rejects.toBeInstanceOf(AssertionError);
    await expect(failed).rejects.not.toBeInstanceOf(ServiceError);
  });
});
