import { describe, expect, test } from 'bun:test';
import { CircuitBreaker } from '../../../../src/inference/providers/client/circuit-breaker.ts';
import {
  type GateBounds,
  noCounts,
  ProviderFailure,
  ProviderGate,
} from '../../../../src/inference/providers/client/provider-gate.ts';
import { RateLimit } from '../../../../src/inference/providers/client/rate-limit.ts';
import { RequestSlots } from '../../../../src/inference/providers/client/request-slots.ts';
import { retryAfterOf } from '../../../../src/inference/providers/client/retry-after.ts';
import { ServiceError } from '../../../../src/protocol/service-error.ts';
import { FakeClock, settle } from '../../../support/fake-clock.ts';

const { signal } = new AbortController();
const unbounded = { requestsPerMinute: undefined, tokensPerMinute: undefined, burst: undefined, concurrentMax: 100 };
const down = (retryAfterMs?: number) => new ProviderFailure('down', retryAfterMs);

function open(bounds: Partial<GateBounds> = {}) {
  const clock = new FakeClock();
  const counts = noCounts();
  const gate = new ProviderGate({ clock, random: () => 0.999, bounds: { ...unbounded, ...bounds }, counts });
  const sentMs: number[] = [];
  const send = (outcome: () => string = () => 'ok', call: object = {}) =>
    gate.run({ signal, tokens: 1, ...call }, () => {
      sentMs.push(clock.monotonicMs());
      return Promise.resolve().then(() => ({ value: outcome(), tokens: 7 }));
    });
  return { clock, counts, gate, send, sentMs };
}

const failing = (error: Error) => () => {
  throw error;
};

describe('a request to a provider', () => {
  test('that failed is sent again after growing pauses, three times at most', async () => {
    const { clock, send, sentMs, counts } = open();
    const sent = send(failing(down())).catch((error: unknown) => error);
    await clock.advance(10_000);
    expect(await sent).toMatchObject({ code: 'upstream_failed' });
    expect(sentMs.map(Math.round)).toEqual([0, 250, 750]);
    expect(counts).toMatchObject({ requests: 3, failures: 3, retries: 2, tokens: 0 });
  });

  test('waits as long as the provider asks, where that is short, and tells the caller where it is long', async () => {
    const { clock, send, sentMs } = open();
    let failures = 1;
    const once = () => {
      failures -= 1;
      if (failures >= 0) throw down(1_500);
      return 'ok';
    };
    const sent = send(once);
    await clock.advance(1_499);
    expect(sentMs).toEqual([0]);
    await clock.advance(1);
    expect(await sent).toBe('ok');
    await expect(send(failing(down(60_000)))).rejects.toMatchObject({ retryAfterMs: 60_000 });
    expect(sentMs).toHaveLength(3);
    await expect(send()).rejects.toMatchObject({ code: 'upstream_failed', retryAfterMs: 60_000 });
    expect(sentMs).toHaveLength(3);
  });

  test('that the provider refuses is not sent again, and opens no breaker', async () => {
    const { send, sentMs, gate } = open();
    for (let time = 0; time < 10; time += 1) {
      await expect(send(failing(new ServiceError('upstream_refused', 'no such key')))).rejects.toThrow('no such key');
    }
    expect(sentMs).toHaveLength(10);
    expect(gate.breaker).toBe('closed');
  });

  test('that the breaker keeps back takes nothing of the rate', async () => {
    const { clock, send, sentMs } = open({ requestsPerMinute: 60, burst: 2 });
    await expect(send(failing(down(5_000)))).rejects.toMatchObject({ retryAfterMs: 5_000 });
    for (let time = 0; time < 20; time += 1) {
      await expect(send()).rejects.toMatchObject({ code: 'upstream_failed' });
    }
    await clock.advance(5_000);
    expect(await send()).toBe('ok');
    expect(sentMs).toEqual([0, 5_000]);
  });

  test('ends with its caller, and gives its slot and its part of the rate back', async () => {
    const { clock, counts, send } = open({ requestsPerMinute: 60, burst: 1, concurrentMax: 1 });
    const stop = new AbortController();
    await send();
    const waiting = send(undefined, { signal: stop.signal }).catch((error: unknown) => error);
    await settle();
    stop.abort(new Error('left'));
    expect(await waiting).toMatchObject({ message: 'left' });
    const sent = send();
    await clock.advance(1_000);
    expect(await sent).toBe('ok');
    expect(counts).toMatchObject({ requests: 2, tokens: 14 });
  });
});

describe('a rate limit', () => {
  test('lets a burst go and then one request after another, in order', async () => {
    const { clock, send, sentMs, counts } = open({ requestsPerMinute: 60, burst: 2 });
    const sent = Promise.all([1, 2, 3, 4].map(() => send()));
    await clock.advance(5_000);
    await sent;
    expect(sentMs).toEqual([0, 0, 1_000, 2_000]);
    expect(counts).toMatchObject({ waits: 2, waitedMs: 3_000 });
  });

  test('counts tokens, and one request of more than a minute holds is let go alone', async () => {
    const { clock, send, sentMs } = open({ tokensPerMinute: 600 });
    const sent = Promise.all([send(undefined, { tokens: 10_000 }), send(undefined, { tokens: 10 })]);
    await clock.advance(60_000);
    await sent;
    expect(sentMs).toEqual([0, 1_000]);
  });

  test('refills up to its burst, however long nobody asks', async () => {
    const clock = new FakeClock();
    const limit = new RateLimit(clock, 60, 3);
    await clock.advance(3_600_000);
    expect([1, 2, 3, 4].map(() => limit.take(1))).toEqual([0, 0, 0, 1_000]);
  });
});

describe('the breaker', () => {
  test('opens after five failures, tries one request alone, and leaves the provider alone for longer each time', async () => {
    const clock = new FakeClock();
    const breaker = new CircuitBreaker(clock);
    for (let time = 0; time < 5; time += 1) {
      expect(breaker.enter()).toBe(0);
      breaker.failed(undefined);
    }
    expect([breaker.state, breaker.enter()]).toEqual(['open', 1_000]);
    await clock.advance(1_000);
    expect(breaker.state).toBe('half_open');
    expect([breaker.enter(), breaker.enter()]).toEqual([0, 250]);
    breaker.failed(undefined);
    expect(breaker.enter()).toBe(2_000);
    await clock.advance(2_000);
    expect(breaker.enter()).toBe(0);
    breaker.succeeded();
    expect([breaker.state, breaker.enter()]).toEqual(['closed', 0]);
  });

  test('keeps a storm of failures from being a storm of requests', async () => {
    const { clock, send, sentMs, gate } = open();
    const background = { priority: 'background' };
    for (let second = 0; second < 600; second += 1) {
      const sent = Promise.allSettled([1, 2, 3, 4].map(() => send(failing(down()), background)));
      await clock.advance(1_000);
      await sent;
    }
    // The first ones, and then one trial an opening: 1, 2, 4, ... 60, 60 seconds.
    expect(sentMs.length).toBeLessThan(40);
    expect(gate.breaker).not.toBe('closed');
  });

  test('lets a trial go again whose caller left', async () => {
    const clock = new FakeClock();
    const breaker = new CircuitBreaker(clock);
    breaker.failed(1_000);
    await clock.advance(1_000);
    expect(breaker.enter()).toBe(0);
    breaker.abandoned();
    expect(breaker.enter()).toBe(0);
  });
});

test('slots go to those whom somebody waits for first', async () => {
  const slots = new RequestSlots(1);
  const first = await slots.take('background', signal);
  const order: string[] = [];
  const take = async (name: string, priority: 'foreground' | 'background') => {
    using _slot = await slots.take(priority, signal);
    order.push(name);
  };
  const all = [take('b1', 'background'), take('b2', 'background'), take('f', 'foreground')];
  first[Symbol.dispose]();
  await Promise.all(all);
  expect(order).toEqual(['f', 'b1', 'b2']);
});

test('the wait that a provider asks for is read in all of its forms', () => {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const of = (headers: Record<string, string>) => retryAfterOf(new Headers(headers), clock);
  expect(of({})).toBeUndefined();
  expect(of({ 'retry-after': '2' })).toBe(2_000);
  expect(of({ 'retry-after': '0' })).toBe(1);
  expect(of({ 'retry-after-ms': '70', 'retry-after': '2' })).toBe(70);
  expect(of({ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' })).toBe(30_000);
  expect(of({ 'retry-after': 'soon' })).toBeUndefined();
  expect(of({ 'retry-after': '99999999' })).toBe(600_000);
});
