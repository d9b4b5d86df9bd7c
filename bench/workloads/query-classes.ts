import { Xorshift32 } from './xorshift32.ts';
import { zipfVocabularySize, zipfWord } from './zipf-vocabulary.ts';

/** A query of a class that engines differ in. `filter` and `sort` are members of a plan of ours, and what they hold. */
export interface ClassedQuery {
  readonly class: QueryClassName;
  readonly kind: 'and' | 'or' | 'phrase' | 'prefix';
  readonly words: readonly string[];
  /** One of the 50 tags, or years. */
  readonly filter?: { readonly tag: string } | { readonly from: number; readonly end: number };
  readonly sort?: 'year';
}

/** The classes of text queries, filters and orders that are compared one by one. */
export const queryClassNames = [
  'term',
  'and',
  'and-frequent',
  'or',
  'or-frequent',
  'or-rare',
  'or-4',
  'or-by-number',
  'or-keyword-2-percent',
  'or-number-10-percent',
  'prefix-5',
  'prefix-100',
  'phrase',
  'phrase-frequent',
] as const;
export type QueryClassName = (typeof queryClassNames)[number];

export const tagCount = 50;

/** The tag of a document by its number: each has 2 percent of them, in no order. */
export function tagOf(number: number): string {
  return tagName((Math.imul(number + 1, 2_654_435_761) >>> 8) % tagCount);
}

/** Words by their rank; the very first are left out, as stop words would be. */
const frequent = { first: 5, end: 60 };
const ordinary = { first: 60, end: 3_000 };
const rare = { first: 5_000, end: Math.floor(zipfVocabularySize / 2) };

/** `perClass` queries of each class; `bodies` are documents, for phrases and for words that occur together. */
export function classedQueries(bodies: readonly string[], perClass: number, seed: number): ClassedQuery[] {
  const random = new Xorshift32(seed ^ 0x1ace);
  const word = (range: { first: number; end: number }) => zipfWord(range.first + random.below(range.end - range.first));
  const two = (range: { first: number; end: number }) => [word(range), word(range)];
  return Array.from({ length: perClass }, (_, at) => {
    const words = (bodies[at % bodies.length] ?? '').split(' ');
    const first = random.below(words.length - 3);
    const near = words.slice(first, first + 4);
    const far = words[random.below(words.length)] ?? '';
    const from = 1950 + random.below(67);
    const union = { kind: 'or', words: two(ordinary) } as const;
    return [
      { class: 'term', kind: 'or', words: [word(ordinary)] },
      { class: 'and', kind: 'and', words: [near[0] ?? '', far] },
      { class: 'and-frequent', kind: 'and', words: two(frequent) },
      { class: 'or', kind: 'or', words: [near[0] ?? '', far] },
      { class: 'or-frequent', kind: 'or', words: two(frequent) },
      { class: 'or-rare', kind: 'or', words: two(rare) },
      { class: 'or-4', kind: 'or', words: near },
      { class: 'or-by-number', ...union, sort: 'year' },
      { class: 'or-keyword-2-percent', ...union, filter: { tag: tagName(random.below(tagCount)) } },
      // Eight of 75 years.
      { class: 'or-number-10-percent', ...union, filter: { from, end: from + 8 } },
      // Of two syllables, of which the second begins so.
      { class: 'prefix-5', kind: 'prefix', words: [zipfWord(1_000 + random.below(8_000)).slice(0, 3)] },
      // Of three syllables, or of two.
      { class: 'prefix-100', kind: 'prefix', words: [zipfWord(1_000 + random.below(8_000)).slice(0, 2)] },
      { class: 'phrase', kind: 'phrase', words: near.slice(0, 2) },
      { class: 'phrase-frequent', kind: 'phrase', words: two(frequent) },
    ] satisfies ClassedQuery[];
  }).flat();
}

function tagName(number: number): string {
  return `tag${String(number).padStart(2, '0')}`;
}
