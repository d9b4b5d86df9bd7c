import { describe, expect, test } from 'bun:test';
import { FailureThrottle } from '../../../src/access/authentication/failure-throttle.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function failures(throttle: FailureThrottle, client: string, most = 100): number {
  for (let count = 1; count <= most; count += 1) {
    try {
      throttle.failed(client);
    } catch (error) {
      expect(error).toMatchObject({ code: 'too_many_attempts' });
      return count;
    }
  }
  return Number.POSITIVE_INFINITY;
}

function isOpen(throttle: FailureThrottle, client: string): boolean {
  try {
    throttle.check(client);
    return true;
  } catch (error) {
    expect((error as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(0);
    return false;
  }
}

describe('the throttle of wrong credentials', () => {
  test('closes for one client after twenty, and opens again by and by', async () => {
    const clock = new FakeClock();
    const throttle = new FailureThrottle(clock);
    expect(failures(throttle, '10.0.0.1')).toBe(21);
    expect([isOpen(throttle, '10.0.0.1'), isOpen(throttle, '10.0.0.2')]).toEqual([false, true]);
    await clock.advance(7_000);
    expect(isOpen(throttle, '10.0.0.1')).toBe(true);
    expect(failures(throttle, '10.0.0.1')).toBeLessThan(4);
  });

  test('takes a network of IPv6 for one client', () => {
    const throttle = new FailureThrottle(new FakeClock());
    for (let host = 0; host < 21; host += 1) {
      try {
        throttle.failed(`2001:db8:1:2::${host}`);
      } catch {}
    }
    expect([isOpen(throttle, '2001:db8:1:2:ffff::1'), isOpen(throttle, '2001:db8:1:3::1')]).toEqual([false, true]);
  });

  test('takes a network of IPv6 for one client however its addresses are written', () => {
    const throttle = new FailureThrottle(new FakeClock());
    for (let host = 1; host < 22; host += 1) {
      try {
        throttle.failed(`2001:db8::${host.toString(16)}:1:2:3`);
      } catch {}
    }
    const others = [
      '2001:db8::5',
      '2001:db8:0:0:9::',
      '2001:db8::1:2:3:4:5',
      '2001:db8:0:1::5',
      '2001:db8:1::5',
      '::1',
    ];
    expect(others.map((client) => isOpen(throttle, client))).toEqual([false, false, true, true, true, true]);
  });

  test('remembers a bounded number of clients', () => {
    const throttle = new FailureThrottle(new FakeClock());
    expect(failures(throttle, 'first')).toBe(21);
    for (let client = 0; client < 8_192; client += 1) throttle.failed(`10.1.${client}`);
    expect(isOpen(throttle, 'first')).toBe(true);
  });
});
