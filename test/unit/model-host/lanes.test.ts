import { describe, expect, test } from 'bun:test';
import { BatchQueue, type Sized } from '../../../src/model-host/backends/onnx/text/batch-queue.ts';
import { Lanes } from '../../../src/model-host/lanes.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const background = { priority: 'background' } as const;
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Lanes with work that ends when it is told to. */
function story() {
  const clock = new FakeClock();
  const lanes = new Lanes(clock);
  const begun: string[] = [];
  const start = (name: string, lane: Parameters<Lanes['run']>[0] = {}) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const ended = lanes.run(lane, async () => {
      begun.push(name);
      await promise;
    });
    ended.catch(() => undefined);
    return { end: resolve, ended };
  };
  return { clock, begun, start };
}

describe('lanes', () => {
  test('foreground work begins at once; background work when there is none, one piece after another', async () => {
    const { begun, start } = story();
    const one = start('one');
    const two = start('two');
    const late = start('late', background);
    start('later', background);
    await settled();
    expect(begun).toEqual(['one', 'two']);
    one.end();
    await settled();
    expect(begun).toHaveLength(2);
    two.end();
    await settled();
    expect(begun).toEqual(['one', 'two', 'late']);
    start('three');
    late.end();
    await late.ended;
    await settled();
    // A foreground piece goes on again.
    expect(begun).toEqual(['one', 'two', 'late', 'three']);
  });

  test('background work is held back for a second at most', async () => {
    const { clock, begun, start } = story();
    start('long');
    start('late', background);
    await settled();
    await clock.advance(999);
    expect(begun).toEqual(['long']);
    await clock.advance(1);
    await settled();
    expect(begun).toEqual(['long', 'late']);
  });

  test('background work that nobody waits for never begins, and lets the next one go', async () => {
    const { begun, start } = story();
    const one = start('one');
    const leaving = new AbortController();
    const left = start('left', { ...background, signal: leaving.signal });
    start('next', background);
    await settled();
    leaving.abort(new Error('gone'));
    await expect(left.ended).rejects.toThrow('gone');
    one.end();
    await settled();
    expect(begun).toEqual(['one', 'next']);
  });
});

describe('a queue of batches', () => {
  const item = (length: number): Sized => ({ length });
  const lane = (priority: 'foreground' | 'background') => ({
    signal: new AbortController().signal,
    priority,
    progress: () => undefined,
  });

  test('reads the background in batches of a short time, and the foreground between them', async () => {
    const batches: number[] = [];
    const clock = new FakeClock();
    let tokensOfMs = 4;
    const queue: BatchQueue<Sized, number> = new BatchQueue(
      8_192,
      async (items) => {
        const tokens = items.length * Math.max(...items.map(({ length }) => length));
        batches.push(tokens);
        // Somebody comes while the second batch is read, and a longer text takes the model longer.
        if (batches.length === 2) void queue.submit([item(1_000), item(1_000)], lane('foreground'));
        if (batches.length === 4) tokensOfMs = 1;
        clock.standStill(tokens / tokensOfMs);
        return items.map(({ length }) => length);
      },
      clock,
    );
    const outputs = await queue.submit(new Array(12).fill(item(64)), lane('background'));
    expect(outputs).toEqual(new Array(12).fill(64));
    expect(batches).toEqual([64, 192, 2_000, 192, 64, 64, 64, 64, 64]);
  });

  test('takes nothing of the background while anything of the foreground waits', async () => {
    const order: number[] = [];
    const queue = new BatchQueue<Sized, number>(100, async (items) => {
      order.push(...items.map(({ length }) => length));
      return items.map(({ length }) => length);
    });
    const late = queue.submit([item(1), item(2)], lane('background'));
    const first = queue.submit([item(90), item(91), item(92)], lane('foreground'));
    await Promise.all([late, first]);
    expect(order).toEqual([90, 91, 92, 1, 2]);
  });
});
