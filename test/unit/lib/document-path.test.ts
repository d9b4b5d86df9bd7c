import { expect, test } from 'bun:test';
import { textAt } from '../../../src/lib/document-path.ts';

const document = JSON.stringify({
  title: 'Leek soup',
  empty: ' ',
  none: null,
  year: 1999,
  author: { name: 'Ann', 'given.name': 'Annabel' },
  steps: [{ text: 'wash' }, { text: ['cut', 'cook'] }, { other: 1 }],
});

test.each([
  ['title', 'Leek soup'],
  ['year', '1999'],
  ['author', '{"name":"Ann","given.name":"Annabel"}'],
  ['author.given.name', 'Annabel'],
  ['steps.text', 'wash\ncut\ncook'],
  ['empty', undefined],
  ['none', undefined],
  ['title.length', undefined],
  ['author.toString', undefined],
  ['missing', undefined],
])('the text at %s', (path, text) => {
  expect(textAt(document, path)).toBe(text as string);
});
