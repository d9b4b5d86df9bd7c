import { describe, expect, test } from 'bun:test';
import { prefixOf } from '../../../src/inference/embeddings/task-prefix.ts';

describe('prefixOf', () => {
  test('finds the names that families of models use', () => {
    expect(prefixOf({ query: 'query: ', passage: 'passage: ' }, 'RETRIEVAL_QUERY', undefined)).toBe('query: ');
    expect(prefixOf({ query: 'query: ', passage: 'passage: ' }, 'RETRIEVAL_DOCUMENT', undefined)).toBe('passage: ');
    expect(prefixOf({ 'Retrieval-query': 'a ', query: 'b ' }, 'RETRIEVAL_QUERY', undefined)).toBe('a ');
    expect(prefixOf({ search_query: 'search_query: ' }, 'QUESTION_ANSWERING', undefined)).toBe('search_query: ');
    expect(prefixOf({ STS: 'sts: ' }, 'SEMANTIC_SIMILARITY', undefined)).toBe('sts: ');
    expect(prefixOf({ query: 'query: ' }, 'CLUSTERING', undefined)).toBe('');
    expect(prefixOf({ query: 'query: ' }, undefined, undefined)).toBe('');
    expect(prefixOf({}, 'FACT_VERIFICATION', undefined)).toBe('');
  });

  test('an instruction goes where the model wants it, else in front', () => {
    const form = { query: 'query: ', instruction: 'Instruct: {instruction}\nQuery: ' };
    expect(prefixOf(form, 'RETRIEVAL_QUERY', 'find $& cats')).toBe('Instruct: find $& cats\nQuery: ');
    expect(prefixOf({ query: 'query: ' }, 'RETRIEVAL_QUERY', 'Find cats:')).toBe('Find cats: ');
    expect(prefixOf({}, undefined, 'Find cats:\n')).toBe('Find cats:\n');
    expect(prefixOf({ query: 'query: ' }, 'RETRIEVAL_QUERY', '')).toBe('query: ');
  });
});
