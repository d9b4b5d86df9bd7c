import { describe, expect, test } from 'bun:test';
import { authValuesIn, rowFiltersFor } from '../../../src/access/subject-filters.ts';

const ann = {
  username: 'ann',
  roles: ['editor', 'author'],
  metadata: { team: 'red', depth: { at: 2 }, tags: ['a', 'b'], odd: { $x: 1 } },
};

function replaced(filter: object): unknown {
  return rowFiltersFor([{ books: filter }], ann)?.books;
}

describe('values of the caller in a row filter', () => {
  test.each([
    [{ term: { owner: { $auth: 'username' } } }, { term: { owner: 'ann' } }],
    [{ terms: { role: { $auth: 'roles' } } }, { terms: { role: ['editor', 'author'] } }],
    [{ term: { team: { $auth: 'metadata.team' } } }, { term: { team: 'red' } }],
    [{ disjuncts: [{ term: { n: { $auth: 'metadata.depth.at' } } }] }, { disjuncts: [{ term: { n: 2 } }] }],
    [{ terms: { tag: { $auth: 'metadata.tags' } } }, { terms: { tag: ['a', 'b'] } }],
  ])('%j becomes %j', (filter, expected) => {
    expect(replaced(filter)).toEqual([expected]);
  });

  test.each(['metadata.missing', 'metadata.team.deeper', 'metadata.toString', 'metadata.depth', 'metadata.odd'])(
    'a filter with "%s", which the caller lacks or which is no value, permits nothing',
    (name) => {
      const filter = { disjuncts: [{ match_all: {} }, { term: { x: { $auth: name } } }] };
      expect(replaced(filter)).toEqual([{ match_none: {} }]);
    },
  );

  test('filters of several subjects stand side by side, by table and for every table', () => {
    const [own, role, all] = [{ term: { a: 1 } }, { term: { b: 1 } }, { term: { c: 1 } }];
    expect(rowFiltersFor([{ books: own }, { books: role, '*': all }], ann)).toEqual({ books: [own, role], '*': [all] });
    expect(rowFiltersFor([{}, {}], ann)).toBeUndefined();
  });

  test('names that no caller has are refused when the filter is set', () => {
    expect(authValuesIn({ a: [{ b: { $auth: 'metadata.team' } }, { $auth: 'roles' }] })).toEqual([
      'metadata.team',
      'roles',
    ]);
    for (const name of ['password', 'metadata', 'metadata.', 'metadata..x', 1, null]) {
      expect(() => authValuesIn({ a: { $auth: name } })).toThrow(/stands alone/);
    }
    expect(() => authValuesIn({ $auth: 'username', boost: 2 })).toThrow(/stands alone/);
  });
});
