import { expect, test } from 'bun:test';
import { FeedConsumers } from '../../../src/indexing/feed-consumers.ts';

test('the feed is purged below whoever stands lowest, and a pin only moves on', () => {
  const consumers = new FeedConsumers();
  expect(consumers.purgeableThrough(100)).toBe(100);
  let index = 40;
  const remove = consumers.add({ neededAfter: () => index });
  expect(consumers.purgeableThrough(100)).toBe(40);
  {
    using pin = consumers.pin(10);
    expect(consumers.purgeableThrough(100)).toBe(10);
    pin.advance(30);
    pin.advance(20);
    expect(consumers.purgeableThrough(100)).toBe(30);
    index = 25;
    expect(consumers.purgeableThrough(100)).toBe(25);
  }
  index = 60;
  expect(consumers.purgeableThrough(100)).toBe(60);
  remove();
  expect(consumers.purgeableThrough(100)).toBe(100);
});
