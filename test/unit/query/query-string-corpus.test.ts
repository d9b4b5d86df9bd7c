import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { checkQueryString } from '../../fuzz/check-query-string.ts';
import { corpusFile, readCorpus } from '../../fuzz/corpus.ts';

test('every kept query string is planned or refused, and the same way each time', () => {
  const corpus = readCorpus(readFileSync(corpusFile('query-string'), 'utf8'));
  expect(corpus.length).toBeGreaterThan(50);
  for (const text of corpus) {
    for (const operator of ['and', 'or'] as const) checkQueryString(text, operator);
  }
});
