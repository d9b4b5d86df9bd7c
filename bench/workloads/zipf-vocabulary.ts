import type { Xorshift32 } from './xorshift32.ts';

const consonants = 'bcdfghjklmnprstvwxyz';
const vowels = 'aeiou';
const syllableCount = consonants.length * vowels.length;

/** Size of the vocabulary, and the two constants of p(rank) ~ 1 / (rank + shift)^exponent, rank counted from 0. */
export const zipfVocabularySize = 50_000;
const shift = 2.7;
const exponent = 1.07;

/**
 * The word of a rank: two syllables of consonant and vowel for the first 9,900 ranks, three for the rest. Pronounceable,
 * all different, letters only (so every tokenizer sees one token), and none of them an English stop word.
 */
export function zipfWord(rank: number): string {
  let rest = rank + syllableCount;
  let word = '';
  while (rest > 0) {
    const syllable = rest % syllableCount;
    word = (consonants[Math.floor(syllable / vowels.length)] ?? '') + (vowels[syllable % vowels.length] ?? '') + word;
    rest = Math.floor(rest / syllableCount);
  }
  return word;
}

/** Draws ranks with the Zipf-Mandelbrot distribution by inverting its cumulative sums. */
export class ZipfVocabulary {
  readonly words: readonly string[];
  readonly #cumulative: Float64Array;

  constructor(size: number = zipfVocabularySize) {
    this.words = Array.from({ length: size }, (_, rank) => zipfWord(rank));
    this.#cumulative = new Float64Array(size);
    let sum = 0;
    for (let rank = 0; rank < size; rank += 1) {
      sum += (rank + shift) ** -exponent;
      this.#cumulative[rank] = sum;
    }
    for (let rank = 0; rank < size; rank += 1) this.#cumulative[rank] = (this.#cumulative[rank] ?? 0) / sum;
  }

  rank(random: Xorshift32): number {
    const target = random.unit();
    let low = 0;
    let high = this.#cumulative.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#cumulative[middle] ?? 0) <= target) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  word(random: Xorshift32): string {
    return this.words[this.rank(random)] ?? '';
  }
}
