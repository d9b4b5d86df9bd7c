import { expect, test } from 'bun:test';
import { Turns } from '../../../src/lib/concurrency/turns.ts';
import { yieldToEventLoop } from '../../../src/lib/concurrency/yield-to-event-loop.ts';

test('loops take turns in the order of their calls, and between two turns the event loop runs', async () => {
  const turns = new Turns();
  const events: string[] = [];
  let isOver = false;
  const others = (async () => {
    while (!isOver) {
      await yieldToEventLoop();
      events.push('-');
    }
  })();
  const loop = async (name: string) => {
    for (let turn = 0; turn < 3; turn += 1) {
      await turns.next();
      events.push(name);
    }
  };
  await Promise.all(['a', 'b', 'c'].map(loop));
  isOver = true;
  await others;
  expect(events.filter((event) => event !== '-').join('')).toBe('abcabcabc');
  expect(events.join('')).not.toMatch(/[abc]{2}/);
});
