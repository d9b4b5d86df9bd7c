import { expect, test } from 'bun:test';
import { type Verified, VerifiedCredentials } from '../../../src/access/authentication/verified-credentials.ts';

function verifiedAs(name: string): Verified {
  const principal = { kind: 'granted', name, grants: [] } as const;
  return { session: { principal, rowFilter: undefined }, expiresMs: undefined, untilMs: undefined };
}

test('a verified header is found by all of its characters, until it is forgotten', () => {
  const verified = new VerifiedCredentials();
  const ann = verifiedAs('ann');
  verified.add('Bearer abc', ann);
  verified.add('Bearer abd', verifiedAs('bob'));
  expect(verified.find('Bearer abc')).toBe(ann);
  for (const other of ['Bearer ab', 'Bearer abcd', 'bearer abc', 'Bearer abc ', '']) {
    expect(verified.find(other)).toBeUndefined();
  }
  verified.add('Bearer abc', verifiedAs('ann again'));
  expect(verified.find('Bearer abc')?.session.principal).toMatchObject({ name: 'ann again' });
  verified.clear();
  expect(verified.find('Bearer abc')).toBeUndefined();
});

test('a bounded number of headers is remembered', () => {
  const verified = new VerifiedCredentials();
  const ann = verifiedAs('ann');
  for (let at = 0; at < 40_000; at += 1) verified.add(`Bearer ${at}`, ann);
  const found = Array.from({ length: 40_000 }, (_, at) => verified.find(`Bearer ${at}`)).filter((each) => each === ann);
  expect(found.length).toBeGreaterThan(0);
  expect(found.length).toBeLessThanOrEqual(32_768);
  expect(verified.find('Bearer 39999')).toBe(ann);
});
