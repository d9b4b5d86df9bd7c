import { expect, test } from 'bun:test';
import type { Session } from '../../../src/access/access-state.ts';
import { type Verified, VerifiedCredentials } from '../../../src/access/authentication/verified-credentials.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function opened() {
  const clock = new FakeClock();
  return { clock, verified: new VerifiedCredentials(clock) };
}

function verifiedAs(name: string, rest: Partial<Verified> = {}): Verified {
  const without = { expiresMs: Number.POSITIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY };
  return { session: sessionOf(name), ...without, ...rest };
}

function sessionOf(name: string): Session {
  return { principal: { kind: 'granted', name, madeMs: 1, grants: [] }, rowFilter: undefined };
}

test('a verified header is found by all of its characters, until it is forgotten', () => {
  const { verified } = opened();
  verified.add('Bearer abc', verifiedAs('ann'));
  verified.add('Bearer abd', verifiedAs('bob'));
  expect(verified.find('Bearer abc')).toEqual(sessionOf('ann'));
  for (const other of ['Bearer ab', 'Bearer abcd', 'bearer abc', 'Bearer abc ', '']) {
    expect(verified.find(other)).toBeUndefined();
  }
  verified.add('Bearer abc', verifiedAs('ann again'));
  expect(verified.find('Bearer abc')).toEqual(sessionOf('ann again'));
  verified.clear();
  expect(verified.find('Bearer abc')).toBeUndefined();
  expect(verified.find('Bearer abd')).toBeUndefined();
  verified.add('Bearer abd', verifiedAs('bob'));
  expect(verified.find('Bearer abc')).toBeUndefined();
  expect(verified.find('Bearer abd')).toEqual(sessionOf('bob'));
});

test('a key is found until the moment of its expiry, a password until its time is over', async () => {
  const { clock, verified } = opened();
  const [keyMs, passwordMs] = [clock.nowMs() + 1_000, clock.monotonicMs() + 2_000];
  verified.add('Bearer abc', verifiedAs('ann', { expiresMs: keyMs }));
  verified.add('Basic abc', verifiedAs('ann', { untilMs: passwordMs }));
  verified.add('Bearer abd', verifiedAs('bob'));
  const found = () => ['Bearer abc', 'Basic abc', 'Bearer abd'].map((header) => verified.find(header) !== undefined);
  await clock.advance(999);
  expect(found()).toEqual([true, true, true]);
  await clock.advance(1);
  expect(found()).toEqual([false, true, true]);
  await clock.advance(999);
  expect(found()).toEqual([false, true, true]);
  await clock.advance(1);
  expect(found()).toEqual([false, false, true]);
  verified.add('Basic abc', verifiedAs('ann', { untilMs: passwordMs + 2_000 }));
  expect(found()).toEqual([false, true, true]);
});

test('a bounded number of headers is remembered', () => {
  const { verified } = opened();
  const ann = verifiedAs('ann');
  for (let at = 0; at < 40_000; at += 1) verified.add(`Bearer ${at}`, ann);
  const found = Array.from({ length: 40_000 }, (_, at) => verified.find(`Bearer ${at}`)).filter(
    (each) => each !== undefined,
  );
  expect(found.length).toBeGreaterThan(0);
  expect(found.length).toBeLessThanOrEqual(32_768);
  expect(verified.find('Bearer 39999')).toEqual(sessionOf('ann'));
});

test('each of many headers is found as what it was verified as', () => {
  const { verified } = opened();
  const count = 32_768;
  for (let at = 0; at < count; at += 1) verified.add(`Bearer ${at}`, verifiedAs(`user ${at}`));
  for (let at = 0; at < count; at += 1) {
    if (!Bun.deepEquals(verified.find(`Bearer ${at}`), sessionOf(`user ${at}`)))
      throw new Error(`header ${at} is found as another`);
  }
  expect(verified.find(`Bearer ${count}`)).toBeUndefined();
});

test('a header that is verified again is found as what it is now, among many', () => {
  const { verified } = opened();
  for (let at = 0; at < 5_000; at += 1) verified.add(`Bearer ${at}`, verifiedAs(`user ${at}`));
  for (let at = 0; at < 5_000; at += 2) verified.add(`Bearer ${at}`, verifiedAs(`user ${at} again`));
  for (let at = 0; at < 5_000; at += 1) {
    const expected = sessionOf(at % 2 === 0 ? `user ${at} again` : `user ${at}`);
    if (!Bun.deepEquals(verified.find(`Bearer ${at}`), expected)) throw new Error(`header ${at} is found as another`);
  }
  expect(verified.find('Bearer 5000')).toBeUndefined();
});
