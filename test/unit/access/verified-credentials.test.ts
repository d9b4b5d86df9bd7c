import { expect, test } from 'bun:test';
import { type Verified, VerifiedCredentials } from '../../../src/access/authentication/verified-credentials.ts';

function verifiedAs(name: string): Verified {
  const held = { name, grants: [], rowFilter: undefined };
  return { held, keyId: `key of ${name}`, expiresMs: 1, untilMs: 2 };
}

test('a verified header is found by all of its characters, until it is forgotten', () => {
  const verified = new VerifiedCredentials();
  const ann = verifiedAs('ann');
  verified.add('Bearer abc', ann);
  verified.add('Bearer abd', verifiedAs('bob'));
  expect(verified.find('Bearer abc')).toEqual(ann);
  for (const other of ['Bearer ab', 'Bearer abcd', 'bearer abc', 'Bearer abc ', '']) {
    expect(verified.find(other)).toBeUndefined();
  }
  verified.add('Bearer abc', verifiedAs('ann again'));
  expect(verified.find('Bearer abc')).toEqual(verifiedAs('ann again'));
  verified.clear();
  expect(verified.find('Bearer abc')).toBeUndefined();
});

test('a bounded number of headers is remembered', () => {
  const verified = new VerifiedCredentials();
  const ann = verifiedAs('ann');
  for (let at = 0; at < 40_000; at += 1) verified.add(`Bearer ${at}`, ann);
  const found = Array.from({ length: 40_000 }, (_, at) => verified.find(`Bearer ${at}`)).filter(
    (each) => each !== undefined,
  );
  expect(found.length).toBeGreaterThan(0);
  expect(found.length).toBeLessThanOrEqual(32_768);
  expect(verified.find('Bearer 39999')).toEqual(ann);
});

test('each of many headers is found as what it was verified as', () => {
  const verified = new VerifiedCredentials();
  for (let at = 0; at < 5_000; at += 1) verified.add(`Bearer ${at}`, verifiedAs(`user ${at}`));
  for (let at = 0; at < 5_000; at += 2) verified.add(`Bearer ${at}`, verifiedAs(`user ${at} again`));
  for (let at = 0; at < 5_000; at += 1) {
    const expected = verifiedAs(at % 2 === 0 ? `user ${at} again` : `user ${at}`);
    if (!Bun.deepEquals(verified.find(`Bearer ${at}`), expected)) throw new Error(`header ${at} is found as another`);
  }
  expect(verified.find('Bearer 5000')).toBeUndefined();
});
