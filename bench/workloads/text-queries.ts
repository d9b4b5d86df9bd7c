import { Xorshift32 } from './xorshift32.ts';
import { zipfDocuments } from './zipf-documents.ts';
import { zipfVocabularySize, zipfWord } from './zipf-vocabulary.ts';

/** `and`, `or`: two words of one document, so that there always is a hit; the named pairs fix how common the words are. */
export const queryClasses = ['and', 'or', 'high-high', 'high-low', 'low-low', 'or-4', 'phrase', 'prefix'] as const;
export type QueryClass = (typeof queryClasses)[number];

export interface TextQuery {
  class: QueryClass;
  /** In the query-string grammar; every word is looked for in the field `body`. */
  text: string;
}

/** Ranks called common (the first hundred, stop-word like ones left out) and rare. */
const high = { first: 20, end: 200 };
const low = { first: 5_000, end: Math.floor(zipfVocabularySize / 2) };

/**
 * `perClass` queries of each class, drawn from the first `documentCount` generated documents. The random numbers of the
 * queries have their own seed: more queries do not change the documents.
 */
export function textQueries(documentCount: number, perClass: number, seed: number): TextQuery[] {
  const random = new Xorshift32(seed ^ 0x5eed);
  const bodies = sampleBodies(documentCount, perClass, seed);
  return bodies.flatMap((body) => {
    const words = body.split(' ');
    const at = random.below(words.length - 3);
    const [first, second, third, fourth] = words.slice(at, at + 4) as [string, string, string, string];
    const far = words[random.below(words.length)] ?? first;
    const pick = (range: { first: number; end: number }) =>
      zipfWord(range.first + random.below(range.end - range.first));
    return [
      { class: 'and', text: `body:${first} AND body:${far}` },
      { class: 'or', text: `body:${first} OR body:${far}` },
      { class: 'high-high', text: `body:${pick(high)} AND body:${pick(high)}` },
      { class: 'high-low', text: `body:${pick(high)} AND body:${pick(low)}` },
      { class: 'low-low', text: `body:${pick(low)} OR body:${pick(low)}` },
      { class: 'or-4', text: `body:${first} OR body:${second} OR body:${third} OR body:${fourth}` },
      { class: 'phrase', text: `body:"${first} ${second}"` },
      { class: 'prefix', text: `body:${first.slice(0, 3)}*` },
    ] satisfies TextQuery[];
  });
}

function sampleBodies(documentCount: number, count: number, seed: number): string[] {
  const bodies: string[] = [];
  const step = Math.max(1, Math.floor(documentCount / count));
  let number = 0;
  for (const document of zipfDocuments(seed)) {
    if (number % step === 0) bodies.push(document.body);
    number += 1;
    if (bodies.length >= count || number >= documentCount) return bodies;
  }
  return bodies;
}
