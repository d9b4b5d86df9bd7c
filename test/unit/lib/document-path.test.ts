import { expect, test } from 'bun:test';
import { keysAt, memberAt, textAt } from '../../../src/lib/document-path.ts';

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

test('a path of keys and members leads through objects alone, as where the engine follows it', () => {
  const tagged = { tags: ['a', 'b'], inner: { tags: ['c', ''] } };
  expect(memberAt(tagged, ['inner', 'tags'])).toEqual(['c', '']);
  expect(keysAt(tagged, 'inner.tags')).toEqual(['c']);
  for (const path of ['tags.0', 'tags.length', 'inner.tags.1']) {
    expect(memberAt(tagged, path.split('.'))).toBeUndefined();
    expect(keysAt(tagged, path)).toEqual([]);
  }
});
