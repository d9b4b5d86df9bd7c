import { describe, expect, test } from 'bun:test';
import { matchDocuments } from '../../../src/engine/native-query.ts';
import { framesOf } from '../../../src/query/document-frames.ts';
import { planQuery } from '../../../src/query/plan/query-plan.ts';
import { openSchema } from '../../../src/tables/schema/document-schema.ts';

/** The meaning of requests on real documents: planned here, evaluated by the native engine. */
const documents: Record<string, unknown> = {
  leek: { title: 'Leek and potato soup', year: 2019, at: '2019-11-05', vegan: true, tags: ['winter', 'green'] },
  miso: { title: 'Miso soup with tofu', year: 2021, at: '2021-03-01T08:00:00Z', vegan: true, chef: { name: 'Ada' } },
  stew: { title: 'Beef stew', year: 2020, at: '2020-06-15', vegan: false, tags: ['winter'], code: '007' },
  salad: { title: 'Potato salad', year: 2022.5, vegan: false, chef: { name: 'Bob' } },
};

async function matches(request: Record<string, unknown>): Promise<string[]> {
  const rows = Object.entries(documents).map(([key, body]) => ({
    key,
    body: new TextEncoder().encode(JSON.stringify(body)),
    ttlBaseMs: undefined,
    writtenMs: undefined,
  }));
  const { plan } = planQuery(request, { name: 'recipes', nowMs: 0 });
  const found: number[] = [];
  for (const frame of framesOf(rows)) found.push(...(await matchDocuments(openSchema, JSON.stringify(plan), frame)));
  return rows.filter((_, index) => found[index] === 1).map((row) => row.key);
}

const strings: [query: string, keys: string[]][] = [
  ['', ['leek', 'miso', 'stew', 'salad']],
  ['soup', ['leek', 'miso']],
  ['soups', ['leek', 'miso']],
  ['potato soup', ['leek']],
  ['potato OR tofu', ['leek', 'miso', 'salad']],
  ['potato || tofu', ['leek', 'miso', 'salad']],
  ['potato && soup || tofu', ['leek', 'miso']],
  ['title:(potato || tofu) && soup', ['leek', 'miso']],
  ['title:potato NOT soup', ['salad']],
  ['-soup', ['stew', 'salad']],
  ['NOT (soup OR salad)', ['stew']],
  ['soup AND year:>2020', ['miso']],
  ['year:>=2020', ['miso', 'stew', 'salad']],
  ['year:<2020', ['leek']],
  ['year:[2019 TO 2021]', ['leek', 'miso', 'stew']],
  ['year:{2019 TO 2021]', ['miso', 'stew']],
  ['year:[2020 TO *]', ['miso', 'stew', 'salad']],
  ['year:2020', ['stew']],
  ['year:2022.50', ['salad']],
  ['year:>2022.25', ['salad']],
  ['at:>="2020-06-15"', ['miso', 'stew']],
  ['at:[2019-01-01 TO 2020-12-31]', ['leek', 'stew']],
  ['at:<2020-01-01', ['leek']],
  ['at:[0001-01-01 TO 9999-12-31]', ['leek', 'miso', 'stew']],
  ['code:>=007', ['stew']],
  ['"potato soup"', ['leek']],
  ['"soup leek"', []],
  ['title:"leek soup"~3', ['leek']],
  ['pot*', ['leek', 'salad']],
  ['title:Pot*', ['leek', 'salad']],
  ['tags:*', ['leek', 'stew']],
  ['chef.name:ada', ['miso']],
  ['title:(soup OR stew) AND vegan:true', ['leek', 'miso']],
  ['tags:(winter green)', ['leek']],
  ['nowhere:soup', []],
  ['soup -the', ['leek', 'miso']],
  ['the soup', ['leek', 'miso']],
  ['the AND (of OR and) AND potato', ['leek', 'salad']],
  ['title:(the stew)', ['stew']],
  ['the', []],
];

const requests: [request: Record<string, unknown>, keys: string[]][] = [
  [{ full_text_search: { match: 'tofu salad', field: 'title' } }, ['miso', 'salad']],
  [{ full_text_search: { match: { title: { query: 'potato salad', operator: 'and' } } } }, ['salad']],
  [{ full_text_search: { match_phrase: 'beef stew' } }, ['stew']],
  [{ filter_query: { term: { 'chef.name': 'Ada' } } }, ['miso']],
  [{ filter_query: { term: { 'chef.name': 'ada' } } }, []],
  [{ filter_query: { term: { year: 2020 } } }, ['stew']],
  [{ filter_query: { term: { vegan: false } } }, ['stew', 'salad']],
  [{ filter_query: { terms: { tags: ['green', 'red'] } } }, ['leek']],
  [{ filter_query: { prefix: 'win', field: 'tags' } }, ['leek', 'stew']],
  [{ filter_query: { min: 2019, max: 2021, field: 'year' } }, ['leek', 'stew']],
  [{ filter_query: { start: '2020-01-01', field: 'at' } }, ['miso', 'stew']],
  [{ filter_query: { min: 'a', max: 'n', field: 'tags' } }, ['leek']],
  [{ filter_query: { range: { year: { gt: 2019, lte: 2021 } } } }, ['miso', 'stew']],
  [{ filter_query: { bool: true, field: 'vegan' } }, ['leek', 'miso']],
  [{ filter_query: { exists: { field: 'chef' } } }, ['miso', 'salad']],
  [{ filter_query: { ids: ['leek', 'nobody'] } }, ['leek']],
  [{ filter_query: { doc_id: { ids: ['stew'] } } }, ['stew']],
  [{ filter_query: { match_none: {} } }, []],
  [{ filter_query: [{ term: { vegan: true } }, { range: { year: { gt: 2019 } } }] }, ['miso']],
  [{ filter_query: { disjuncts: [{ match: 'soup' }, { match: 'potato' }, { match: 'leek' }], min: 2 } }, ['leek']],
  [{ filter_query: { conjuncts: [{ match: 'the' }, { match: 'soup' }] } }, ['leek', 'miso']],
  [{ full_text_search: { match: 'the soup', operator: 'and' } }, ['leek', 'miso']],
  [{ full_text_search: { match: 'of the' }, filter_query: { match: 'and' } }, []],
  [{ exclusion_query: { match: 'soup' } }, ['stew', 'salad']],
  [{ filter_prefix: 's' }, ['stew', 'salad']],
  [{ full_text_search: { query: 'soup stew', default_operator: 'or' } }, ['leek', 'miso', 'stew']],
  [{ query: { bool: { should: [{ match: 'soup' }], filter: [{ match: 'potato' }] } } }, ['leek', 'salad']],
  [{ query: { bool: { should: [{ match: 'soup' }], minimum_should_match: 0 } } }, ['leek', 'miso', 'stew', 'salad']],
  [{ query: { bool: { must_not: [{ match: 'soup' }] } } }, ['stew', 'salad']],
];

describe('the query language on documents', () => {
  for (const [query, keys] of strings) {
    test(`${JSON.stringify(query)} finds ${keys.join(', ') || 'nothing'}`, async () => {
      expect(await matches({ full_text_search: { query } })).toEqual(keys);
      expect(await matches({ filter_query: { query } })).toEqual(keys);
    });
  }

  for (const [request, keys] of requests) {
    test(`${JSON.stringify(request)} finds ${keys.join(', ') || 'nothing'}`, async () => {
      expect(await matches(request)).toEqual(keys);
    });
  }

  test('a query as deep and as wide as is allowed is evaluated', async () => {
    let deep = 'soup';
    for (let level = 0; level < 60; level += 1) deep = level % 2 ? `(${deep}) OR zzz` : `(${deep}) AND soup`;
    expect(await matches({ full_text_search: { query: deep } })).toEqual(['leek', 'miso']);
    expect(await matches({ filter_query: { query: `${'zzz OR '.repeat(1_000)}soup` } })).toEqual(['leek', 'miso']);
  });
});
