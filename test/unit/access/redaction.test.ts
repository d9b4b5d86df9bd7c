import { expect, test } from 'bun:test';
import { redacted } from '../../../src/access/secrets/redaction.ts';

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

test('the longer of two secrets goes first, and an empty one takes nothing out', () => {
  expect(redacted('abcdef abc', ['abc', 'abcdef', ''])).toBe('(secret) (secret)');
});
