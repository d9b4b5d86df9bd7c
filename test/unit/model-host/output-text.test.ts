import { describe, expect, test } from 'bun:test';
import { OutputText } from '../../../src/model-host/backends/llama/generation/output-text.ts';
import { SeededRandom } from '../../support/fault/seeded-random.ts';

const encoder = new TextEncoder();

/** The shown part of a text that arrives in these pieces of bytes. */
function show(pieces: readonly Uint8Array[], stops: readonly string[]): { shown: string[]; stop: string | undefined } {
  const output = new OutputText(stops);
  const shown: string[] = [];
  for (const piece of pieces) {
    const event = output.push(piece, undefined);
    if (event !== undefined) shown.push(event.text);
    if (output.stopText !== undefined) break;
  }
  const last = output.finish();
  if (last !== undefined) shown.push(last.text);
  return { shown, stop: output.stopText };
}

describe('text from the bytes of tokens', () => {
  test('is the same however it is cut, up to the first stop text', () => {
    const seed = 7;
    const random = new SeededRandom(seed);
    const alphabet = ['a', 'b', 'ab', '\u00e9', '\u20ac', '\u{1f33b}', '\ufeff', ' ', 'END'];
    for (let turn = 0; turn < 500; turn += 1) {
      const text = Array.from({ length: 12 }, () => alphabet[random.between(0, alphabet.length - 1)]).join('');
      const stops = [['aba', '\u20ac\u{1f33b}'], ['END'], [], ['b b', 'a\u00e9']][turn % 4] ?? [];
      const bytes = encoder.encode(text);
      const pieces: Uint8Array[] = [];
      for (let at = 0; at < bytes.length; ) {
        const length = random.between(1, 4);
        pieces.push(bytes.slice(at, at + length));
        at += length;
      }
      const { shown, stop } = show(pieces, stops);
      const ends = stops.map((each) => text.indexOf(each)).filter((at) => at >= 0);
      const expected = ends.length === 0 ? text : text.slice(0, Math.min(...ends));
      // Of two stop texts the one that is complete first ends the output; it may begin later.
      if (stops.length < 2) expect(shown.join(''), `seed ${seed}, turn ${turn}`).toBe(expected);
      else expect(text).toStartWith(shown.join(''));
      for (const each of stops) expect(shown.join('')).not.toContain(each);
      expect(stop === undefined).toBe(ends.length === 0);
      expect(shown.join('')).not.toContain('\ufffd');
    }
  });

  test('shows at once what cannot begin a stop text', () => {
    const pieces = ['one ', 'tw', 'o', ' th', 'ree'].map((piece) => encoder.encode(piece));
    expect(show(pieces, ['two!']).shown).toEqual(['one ', 'two th', 'ree']);
  });

  test('shows bytes that are no UTF-8 as such, and leaves out a character that was not finished', () => {
    expect(show([Uint8Array.of(97, 255), Uint8Array.of(98)], []).shown.join('')).toBe('a\ufffdb');
    expect(show([Uint8Array.of(97, 0xf0, 0x9f)], []).shown.join('')).toBe('a');
  });
});
