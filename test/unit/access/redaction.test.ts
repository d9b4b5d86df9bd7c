import { expect, test } from 'bun:test';
import { Redaction } from '../../../src/access/secrets/redaction.ts';
import { threadMs } from '../../support/thread-time.ts';

const redacted = (text: string, values: readonly string[]) => new Redaction(values).redact(text);
const secret = 'pa+ss/w "o" rd=é';

test('a text that quotes a secret does not show it, however it was written', () => {
  const quoted = [
    `the key ${secret} is wrong`,
    `body was client_secret=${encodeURIComponent(secret)}&grant_type=refresh_token`,
    `body was client_secret=${encodeURIComponent(secret).toLowerCase()}`,
    `body was ${new URLSearchParams({ client_secret: secret })}`,
    `body was ${JSON.stringify({ api_key: secret })}`,
    `body was ${Buffer.from(secret).toString('base64')}`,
  ];
  for (const text of quoted) {
    const shown = redacted(text, [secret]);
    expect(shown).toContain('(secret)');
    for (const piece of ['pa+ss', 'pa%2', 'ss/w', Buffer.from(secret).toString('base64').slice(4, 12)]) {
      expect(shown.toLowerCase()).not.toContain(piece.toLowerCase());
    }
  }
});

test('a secret within what base64 hides is not shown, whatever is beside it', () => {
  const tokens = ['p\u{3ff}\u{3fe}w~~?ord', secret, 'abcd', 'a-key-of-32-characters-0123456789'];
  for (const value of tokens) {
    for (const before of ['', 'u', 'us', 'ann:']) {
      for (const after of ['', 'x', 'xy', ':more']) {
        for (const encoding of ['base64', 'base64url'] as const) {
          const whole = Buffer.from(before + value + after).toString(encoding);
          const [start, ...end] = redacted(`Basic ${whole}`, [value]).split('(secret)');
          expect([whole, end.length]).toEqual([whole, 1]);
          const left = `${start?.slice('Basic '.length)}${end.join('')}`.replaceAll('=', '');
          // Beside what is not secret, a character at each end holds some bits of it.
          expect(left.length).toBeLessThanOrEqual(Math.ceil(((before.length + after.length) * 4) / 3) + 2);
        }
      }
    }
  }
});

test('nothing of secrets that overlap is left', () => {
  expect(redacted('see abcdef.', ['abcd', 'cdef'])).toBe('see (secret).');
  expect(redacted('see abcdefgh.', ['abcdefgh', 'cdef'])).toBe('see (secret).');
  expect(redacted('abcdabcd', ['abcd'])).toBe('(secret)(secret)');
});

test('a message of a megabyte is searched for thousands of secrets at once', () => {
  const secrets = Array.from({ length: 5_000 }, (_, at) => `sk-${'0123456789abcdef'.repeat(2)}-${at}`);
  const text = `${'the key sk-0123456789 is not known; '.repeat(30_000)}${secrets[17]}`;
  const redaction = new Redaction(secrets);
  const before = threadMs();
  expect(redaction.redact(text).endsWith('; (secret)')).toBe(true);
  expect(threadMs() - before).toBeLessThan(500);
});

test('the longer of two secrets goes first, and an empty one takes nothing out', () => {
  expect(redacted('abcdef abc', ['abc', 'abcdef', ''])).toBe('(secret) (secret)');
});
