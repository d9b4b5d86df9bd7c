import { describe, expect, test } from 'bun:test';
import { didYouMean, suggestion } from '../../../src/lib/text/did-you-mean.ts';

const names = ['limit', 'offset', 'filter_query', 'fields', 'field', 'order_by', 'gte', 'gt', 'lt', 'lte'];

describe('did you mean', () => {
  const guesses: [word: string, guess: string | undefined][] = [
    ['limt', 'limit'],
    ['limitt', 'limit'],
    ['ilmit', 'limit'],
    ['LIMIT', 'limit'],
    ['feild', 'field'],
    ['filterQuery', 'filter_query'],
    ['filter-query', 'filter_query'],
    ['orderby', 'order_by'],
    ['ge', 'gte'],
    ['colour', undefined],
    ['x', undefined],
    ['', undefined],
    ['x'.repeat(100_000), undefined],
  ];
  for (const [word, guess] of guesses) {
    test(`${word.slice(0, 20)} means ${guess}`, () => expect(didYouMean(word, names)).toBe(guess));
  }

  test('the nearest wins, the first among equals', () => {
    expect(didYouMean('fieldd', names)).toBe('fields');
    expect(didYouMean('fielt', names)).toBe('field');
    expect(didYouMean('field', names)).toBe('field');
  });

  test('a suggestion is a sentence to append, or nothing', () => {
    expect(suggestion('limt', names)).toBe(' Did you mean "limit"?');
    expect(suggestion('colour', names)).toBe('');
  });
});
