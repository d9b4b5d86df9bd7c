import { describe, expect, test } from 'bun:test';
import { parseGlossLine } from '../../../src/cli/demo/wordnet-glosses.ts';

describe('parseGlossLine', () => {
  test('reads the offset, every word, the gloss and the pointers', () => {
    const line =
      '00915402 00 s 03 jagged 0 jaggy 0 scraggy 0 003 & 00914441 a 0000 + 09343732 n 0201 + 04779930 n 0101 | having a sharply uneven surface; "jagged crags"  ';
    expect(parseGlossLine(line)).toEqual({
      offset: '00915402',
      words: ['jagged', 'jaggy', 'scraggy'],
      gloss: 'having a sharply uneven surface; "jagged crags"',
      pointers: [
        { type: 'similar_to', target: 'a:00914441' },
        { type: 'derivation', target: 'n:09343732' },
        { type: 'derivation', target: 'n:04779930' },
      ],
    });
  });

  test('counts words in hexadecimal', () => {
    const words = Array.from({ length: 16 }, (_, index) => `w${String.fromCharCode(97 + index)} 0`).join(' ');
    expect(parseGlossLine(`00000001 03 n 10 ${words} 000 | sixteen words`)?.words).toHaveLength(16);
  });

  test('makes underscores spaces and drops the marker of an adjective', () => {
    expect(parseGlossLine('00000001 00 a 02 well_known(p) 0 galore(ip) 0 000 | x')?.words).toEqual([
      'well known',
      'galore',
    ]);
  });

  test('passes over the licence and the empty last line', () => {
    expect(parseGlossLine('  1 This software and database is being provided to you')).toBeUndefined();
    expect(parseGlossLine('')).toBeUndefined();
  });

  test('finds the adjectives of a cluster in the file of all adjectives', () => {
    expect(parseGlossLine('00000001 00 a 01 hot 0 001 & 00000002 s 0000 | x')?.pointers).toEqual([
      { type: 'similar_to', target: 'a:00000002' },
    ]);
    expect(() => parseGlossLine('00000001 00 a 01 hot 0 001 ? 00000002 s 0000 | x')).toThrow('unknown pointer');
  });

  test('refuses a line without a gloss', () => {
    expect(() => parseGlossLine('00000001 03 n 01 word 0 000')).toThrow('without a gloss');
  });
});
