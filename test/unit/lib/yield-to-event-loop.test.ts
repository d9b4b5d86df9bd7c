import { expect, test } from 'bun:test';
import { forEachYielding, yieldToEventLoop } from '../../../src/lib/concurrency/yield-to-event-loop.ts';

test('loops that yield go on in turn, and the event loop runs between any two of their slices', async () => {
  const events: string[] = [];
  let isOver = false;
  const run = () => {
    events.push('-');
    if (!isOver) setImmediate(run);
  };
  setImmediate(run);
  const loop = async (name: string) => {
    for (let slice = 0; slice < 3; slice += 1) {
      await yieldToEventLoop();
      events.push(name);
    }
  };
  await Promise.all(['a', 'b', 'c'].map(loop));
  isOver = true;
  expect(events.filter((event) => event !== '-').join('')).toBe('abcabcabc');
  expect(events.join('')).not.toMatch(/[abc]{2}/);
});

test('a loop visits all of its items in order and yields between slices alone', async () => {
  const visited: number[] = [];
  const done = forEachYielding(5, (at) => visited.push(at), 2);
  expect(visited).toEqual([0, 1]);
  await done;
  expect(visited).toEqual([0, 1, 2, 3, 4]);
});
