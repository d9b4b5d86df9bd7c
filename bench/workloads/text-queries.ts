import { Xorshift32 } from './xorshift32.ts';
import { zipfDocuments } from './zipf-documents.ts';
import { zipfVocabularySize, zipfWord } from './zipf-vocabulary.ts';

/** `and`, `or`: two words of one document, so that there always is a hit; the named pairs fix how common the words are. */
export const queryClasses = ['and', 'or', 'high-high', 'high-low', 'low-low', 'or-4', 'phrase', 'prefix'] as const;
export type QueryClass = (typeof queryClasses)[number];

export interface TextQuery {
  class: QueryClass;
  kind: 'and' | 'or' | 'phrase' | 'prefix';
  field: 'body';
  words: string[];
}

/** Ranks called common (the very first left out, as stop words would be) and rare. */
const high = { first: 20, end: 200 };
const low = { first: 5_000, end: Math.floor(zipfVocabularySize / 2) };

/**
 * `perClass` queries of each class, drawn from the first `documentCount` generated documents. The random numbers of the
 * queries have their own seed: more queries do not change the documents.
 */
export function textQueries(documentCount: number, perClass: number, seed: number): TextQuery[] {
  const random = new Xorshift32(seed ^ 0x5eed);
  const pick = (range: { first: number; end: number }) => zipfWord(range.first + random.below(range.end - range.first));
  return sampleBodies(documentCount, perClass, seed).flatMap((body) => {
    const words = body.split(' ');
    const at = random.below(words.length - 3);
    const near = words.slice(at, at + 4);
    const far = words[random.below(words.length)] ?? '';
    const [first = '', second = ''] = near;
    const field = 'body' as const;
    return [
      { class: 'and', kind: 'and', field, words: [first, far] },
      { class: 'or', kind: 'or', field, words: [first, far] },
      { class: 'high-high', kind: 'and', field, words: [pick(high), pick(high)] },
      { class: 'high-low', kind: 'and', field, words: [pick(high), pick(low)] },
      { class: 'low-low', kind: 'or', field, words: [pick(low), pick(low)] },
      { class: 'or-4', kind: 'or', field, words: near },
      { class: 'phrase', kind: 'phrase', field, words: [first, second] },
      { class: 'prefix', kind: 'prefix', field, words: [first.slice(0, 3)] },
    ] satisfies TextQuery[];
  });
}

/** The query in the query-string grammar. */
export function queryString({ kind, field, words }: TextQuery): string {
  if (kind === 'phrase') return `${field}:"${words.join(' ')}"`;
  if (kind === 'prefix') return `${field}:${words.join('')}*`;
  return words.map((word) => `${field}:${word}`).join(kind === 'and' ? ' AND ' : ' OR ');
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
