import { Xorshift32 } from './xorshift32.ts';
import { ZipfVocabulary } from './zipf-vocabulary.ts';

/** The seed of every generated data set; it stands in every result line. */
export const workloadSeed = 42;

const meanBodyWords = 80;
const titleWords = 5;
const categories = ['news', 'science', 'sport', 'travel', 'culture', 'cooking', 'history', 'law'] as const;

/** A generated document: two analysed texts, one integer, one short exact string; about 540 bytes as JSON. */
export interface ZipfDocument {
  key: string;
  title: string;
  body: string;
  year: number;
  category: string;
}

/** Yields the same documents for the same seed, for ever; body length is uniform in 0.5 to 1.5 times 80 words. */
export function* zipfDocuments(seed: number = workloadSeed): Generator<ZipfDocument, never> {
  const random = new Xorshift32(seed);
  const vocabulary = new ZipfVocabulary();
  for (let number = 0; ; number += 1) {
    const length = Math.floor(meanBodyWords * (0.5 + random.unit()));
    yield {
      key: zipfKey(number),
      title: words(vocabulary, random, titleWords),
      body: words(vocabulary, random, length),
      year: 1950 + random.below(75),
      category: categories[random.below(categories.length)] ?? 'news',
    };
  }
}

/** Keys of a fixed width, so that insertion order is key order. */
export function zipfKey(number: number): string {
  return `doc:${number.toString().padStart(9, '0')}`;
}

/** The stored form: the members of the document without its key. */
export function zipfBody(document: ZipfDocument): string {
  const { title, body, year, category } = document;
  return `{"title":"${title}","body":"${body}","year":${year},"category":"${category}"}`;
}

function words(vocabulary: ZipfVocabulary, random: Xorshift32, count: number): string {
  let text = vocabulary.word(random);
  for (let index = 1; index < count; index += 1) text += ` ${vocabulary.word(random)}`;
  return text;
}
