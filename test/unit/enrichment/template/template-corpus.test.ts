import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { checkTemplate } from '../../../fuzz/check-template.ts';
import { corpusFile, readCorpus } from '../../../fuzz/corpus.ts';

const corpus = readCorpus(readFileSync(corpusFile('template'), 'utf8'));

test('every kept template is rendered or refused, and the same way each time', () => {
  expect(corpus.length).toBeGreaterThan(50);
  for (const template of corpus) checkTemplate(template);
});

test('so is every template that is cut out of them and put together', () => {
  const piece = fc
    .tuple(fc.constantFrom(...corpus), fc.nat(40), fc.nat(40))
    .map(([text, from, to]) => (from < to ? text.slice(from, to) : text));
  fc.assert(fc.property(fc.array(piece, { maxLength: 5 }), (pieces) => void checkTemplate(pieces.join(''))));
});
