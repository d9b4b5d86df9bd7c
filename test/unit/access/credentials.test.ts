import { describe, expect, test } from 'bun:test';
import { readCredential } from '../../../src/access/authentication/credentials.ts';

const encoded = Buffer.from('key-1:secrets').toString('base64');

describe('the header of a credential', () => {
  test('is base64 of either alphabet, with its padding or without', () => {
    const key = { kind: 'key', keyId: 'key-1', secret: 'secrets' } as const;
    expect(encoded).toEndWith('=');
    for (const text of [encoded, encoded.replaceAll('=', '')]) {
      expect(readCredential(`Bearer ${text}`)).toEqual(key);
      expect(readCredential(`apikey ${text}`)).toEqual(key);
    }
    expect(readCredential(`Basic ${encoded}`)).toEqual({ kind: 'password', user: 'key-1', password: 'secrets' });
    const odd = Buffer.from('u:\u00ff\u00fe?>').toString('base64url');
    expect(odd).toMatch(/[-_]/);
    expect(readCredential(`Basic ${odd}`)).toEqual({ kind: 'password', user: 'u', password: '\u00ff\u00fe?>' });
  });

  const unpadded = Buffer.from('k:1234').toString('base64');
  const refused: readonly (readonly [what: string, header: string])[] = [
    ['a last character that stands for no byte', `Bearer ${unpadded}A`],
    ['more padding than there may be', `Bearer ${unpadded}===`],
    ['bytes that are not UTF-8', `Bearer ${Buffer.from([0x61, 0x3a, 0xff]).toString('base64')}`],
    ['no colon', `Bearer ${Buffer.from('key').toString('base64')}`],
    ['an empty name', `Bearer ${Buffer.from(':secret').toString('base64')}`],
    ['another scheme', `Digest ${encoded}`],
  ];
  test.each(refused)('with %s is none', (_what, header) => {
    expect(readCredential(header)).toBeUndefined();
  });
});
