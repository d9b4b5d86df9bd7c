import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { chunkKey, openChunkCache } from '../../../src/inference/chunking/chunk-cache.ts';
import { type FixedOptions, fixedChunks } from '../../../src/inference/chunking/fixed-chunks.ts';
import { wordTokens } from '../../../src/inference/chunking/word-tokens.ts';
import { CodePointOffsets } from '../../../src/lib/text/code-points.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const tokensOf = (text: string) => {
  const { starts, ends } = wordTokens(text, 0, 1_000);
  return starts.map((start, at) => text.slice(start, ends[at]));
};
const chunksOf = (text: string, options: Partial<FixedOptions> = {}) => {
  const all = { targetTokens: 8, overlapTokens: 0, separator: '\n\n', ...options };
  return [...fixedChunks(text, all)].map(({ start, end }) => text.slice(start, end));
};

/** Counts how often a character of it is looked at. */
class LookedAt extends String {
  looks = 0;

  override charAt(at: number): string {
    this.looks += 1;
    return super.charAt(at);
  }

  override charCodeAt(at: number): number {
    this.looks += 1;
    return super.charCodeAt(at);
  }

  override slice(from?: number, to?: number): string {
    const piece = super.slice(from, to);
    this.looks += piece.length;
    return piece;
  }

  override lastIndexOf(wanted: string, from: number): number {
    const found = super.lastIndexOf(wanted, from);
    this.looks += from - found;
    return found;
  }
}

describe('tokens without a model', () => {
  test('are short runs of letters and digits, and single characters of anything else', () => {
    expect(tokensOf("It's 42, isn't it?")).toEqual(['It', "'", 's', '42', ',', 'isn', "'", 't', 'it', '?']);
    expect(tokensOf('tokenisation')).toEqual(['tokenisa', 'tion']);
    expect(tokensOf('日本語 テスト 한국')).toEqual(['日', '本', '語', 'テ', 'ス', 'ト', '한', '국']);
    expect(tokensOf('e\u0301a 🎉👩\u200d🔬')).toEqual(['e\u0301a', '🎉', '👩\u200d', '🔬']);
    expect(tokensOf(' \n\t')).toEqual([]);
  });
});

describe('fixedChunks', () => {
  test.each([
    ['nothing but closing marks', ')', 500, 20],
    ['without a separator', 'ab ', 8, 417],
  ])('looks at each character a few times, also in a text %s', (_, piece, targetTokens, count) => {
    const text = new LookedAt(piece.repeat(10_000).slice(0, 10_000));
    expect(chunksOf(text as unknown as string, { targetTokens })).toHaveLength(count);
    expect(text.looks).toBeGreaterThan(text.length);
    expect(text.looks).toBeLessThan(20 * text.length);
  });

  test('ends at an empty line, else a line, a sentence, a word', () => {
    expect(chunksOf('a b c d e\n\nf g h i j k')).toEqual(['a b c d e', 'f g h i j k']);
    expect(chunksOf('a b c d e\nf g h i j k')).toEqual(['a b c d e', 'f g h i j k']);
    expect(chunksOf('a b c d e. f g h i j k')).toEqual(['a b c d e.', 'f g h i j k']);
    expect(chunksOf('a b c (d e.) f g h i j')).toEqual(['a b c (d e.)', 'f g h i j']);
    expect(chunksOf('a b c d e f g h i j k')).toEqual(['a b c d e f g h', 'i j k']);
    expect(chunksOf('一二三四五。六七八九十')).toEqual(['一二三四五。', '六七八九十']);
    expect(chunksOf('a b c d supercalifragilisticexpialidocious', { targetTokens: 6 })[0]).toBe('a b c d');
  });

  test('takes a separator of the caller: space stays between chunks, anything else ends one', () => {
    expect(chunksOf('a b c d e | f g h i j', { separator: '|' })).toEqual(['a b c d e |', 'f g h i j']);
    expect(chunksOf('a b c d e\n## f g h i', { separator: '\n## ' })).toEqual(['a b c d e', '## f g h i']);
    expect(chunksOf('a b c d e f g h i', { separator: '' })).toEqual(['a b c d e f g h', 'i']);
  });

  test('repeats the end of a chunk, up to half of it', () => {
    const words = 'a b c d e f g h i j k l';
    expect(chunksOf(words, { overlapTokens: 2 })).toEqual(['a b c d e f g h', 'g h i j k l']);
    expect(chunksOf(words, { overlapTokens: 100 })[1]).toBe('e f g h i j k l');
  });

  test('nothing makes no chunk', () => {
    expect(chunksOf('')).toEqual([]);
    expect(chunksOf(' \n ')).toEqual([]);
  });

  test('loses no character but space, keeps to the size, cuts no character in two', () => {
    const words = fc.constantFrom('word', 'a', 'supercalifragilistic', '.', '! ', '\n', '\n\n', ' ', '語', '🎉', 'é');
    const texts = fc.array(words, { maxLength: 200 }).map((all) => all.join(''));
    const sizes = fc.record({ targetTokens: fc.integer({ min: 1, max: 30 }), overlapTokens: fc.nat(40) });
    fc.assert(
      fc.property(texts, sizes, (text, size) => {
        const chunks = [...fixedChunks(text, { ...size, separator: '\n\n' })];
        let covered = 0;
        let before = -1;
        for (const { start, end, tokens } of chunks) {
          const piece = text.slice(start, end);
          expect(piece).toBe(piece.trim());
          expect(piece.isWellFormed()).toBe(true);
          expect(tokens).toBeLessThanOrEqual(size.targetTokens);
          expect(start).toBeGreaterThan(before);
          expect(text.slice(covered, Math.max(covered, start)).trim()).toBe('');
          before = start;
          covered = end;
        }
        expect(text.slice(covered).trim()).toBe('');
      }),
      { seed: 11, numRuns: 300 },
    );
  });
});

describe('offsets in characters', () => {
  test('count a character of two units once', () => {
    const offsets = new CodePointOffsets('a🎉b');
    expect([0, 1, 3, 4, 1].map((unit) => offsets.at(unit))).toEqual([0, 1, 2, 3, 1]);
    expect(new CodePointOffsets('plain').at(3)).toBe(3);
  });
});

describe('the cache', () => {
  const cut = (chunks: number) => ({
    model: 'fixed',
    tokens: chunks,
    chunks: new Array(chunks).fill({ start: 0, end: 1, tokens: 1 }),
  });

  test('forgets after its time, and what is oldest when it is full', async () => {
    const clock = new FakeClock();
    const cache = openChunkCache(clock, { keptMs: 120_000, chunksMax: 10 });
    cache.set('a', cut(3));
    await clock.advance(60_000);
    cache.set('b', cut(3));
    expect(cache.get('a')).toEqual(cut(3));
    await clock.advance(60_001);
    expect(cache.get('a')).toBeUndefined();
    expect(cache.get('b')).toEqual(cut(3));
    cache.set('c', cut(5));
    cache.set('d', cut(2));
    expect([cache.get('b'), cache.get('c'), cache.get('d')]).toEqual([undefined, cut(5), cut(2)]);
    cache.set('e', cut(50));
    expect(cache.get('e')).toBeUndefined();
  });

  test('tells configuration and text apart', () => {
    expect(chunkKey('a', 'b')).toBe(chunkKey('a', 'b'));
    expect(chunkKey('a', 'b')).not.toBe(chunkKey('a', 'c'));
    expect(chunkKey('{}', 'x')).not.toBe(chunkKey('{"a":1}', 'x'));
  });
});
