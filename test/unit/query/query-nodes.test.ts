import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { QueryBudget } from '../../../src/query/nodes/query-budget.ts';
import { readQueryNode } from '../../../src/query/nodes/query-nodes.ts';
import { showPlan } from '../../support/show-plan.ts';

function read(node: unknown) {
  return readQueryNode(node, { where: 'q', depth: 0, budget: new QueryBudget() });
}

function failure(node: unknown): ServiceError {
  try {
    read(node);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error(`read: ${JSON.stringify(node)}`);
}

const a = { match: 'a' };
const b = { match: 'b' };
const c = { match: 'c' };

const nodes: [node: unknown, plan: string][] = [
  // Query strings
  [{ query: 'a b' }, '(+a +b)'],
  [{ query: 'a b', default_operator: 'or' }, '(~a|or/1 ~b|or/1)'],
  [{ query: 'a b', default_operator: 'OR', boost: 2 }, '(~a|or/1 ~b|or/1)^2'],
  [{ query: 'a', field: 'f' }, 'f:a'],
  [{ query: '' }, 'all'],
  // Match
  [{ match: 'a b' }, 'a b|or'],
  [{ match: 'a b', field: 'f', operator: 'and', boost: 2 }, 'f:a b^2'],
  [{ match: 'a', path: '/b/c~1d' }, 'b.c/d:a|or'],
  [{ match: 'a', analyzer: 'german' }, 'a|or@german'],
  [{ match: { field: 'f', text: 'a' } }, 'f:a|or'],
  [{ match: { field: 'f', text: 'a', operator: 'and', boost: 3 } }, 'f:a^3'],
  [{ match: { f: 'a' } }, 'f:a|or'],
  [{ match: { f: 'a' }, boost: 2 }, 'f:a|or^2'],
  [{ match: { f: { query: 'a b', operator: 'and', boost: 2 } }, boost: 2 }, 'f:a b^4'],
  [{ match: { field: 'a' } }, 'field:a|or'],
  [{ match: { text: 'a' } }, 'text:a|or'],
  [{ match: 2020, field: 'year' }, 'year:2020|or'],
  [{ match: 'a', fuzziness: 0, prefix_length: 2 }, 'a|or'],
  [{ match: 'a', field: null, boost: null }, 'a|or'],
  [{ match: '' }, '|or'],
  // Phrases
  [{ match_phrase: 'a b' }, '"a b"'],
  [{ match_phrase: 'a b', field: 'f', slop: 2 }, 'f:"a b"~2'],
  [{ match_phrase: { f: 'a b' } }, 'f:"a b"'],
  [{ match_phrase: { field: 'f', text: 'a b', slop: 1 } }, 'f:"a b"~1'],
  // Terms
  [{ term: 'a', field: 'f' }, 'f:="a"'],
  [{ term: 'a' }, '="a"'],
  [{ term: { f: 5 } }, 'f:=5'],
  [{ term: { f: true } }, 'f:=true'],
  [{ term: { _id: 7 } }, '_id:="7"'],
  [{ term: { f: { value: 'a', boost: 2 } } }, 'f:="a"^2'],
  [{ term: { field: 'f', value: 'a' } }, 'f:="a"'],
  [{ term: { field: 'f', text: 'a' } }, 'f:="a"'],
  [{ prefix: { field: 'f', text: 'a' } }, 'f:a*'],
  [{ prefix: { path: '/f/g', text: 'a', boost: 2 } }, 'f.g:a*^2'],
  [{ wildcard: { field: 'f', text: 'a*' } }, 'f:wild(a*)'],
  [{ regexp: { field: 'f', text: 'a+' } }, 'f:/a+/'],
  [{ fuzzy: { field: 'f', text: 'a', fuzziness: 1 } }, 'f:a~1'],
  [{ match_phrase: { field: 'f', text: 'a' } }, 'f:"a"'],
  [{ term: { field: 'f', term: 'a' } }, 'f:="a"'],
  [{ term: { path: '/f/g', value: 'a' } }, 'f.g:="a"'],
  [JSON.parse('{"term":{"__proto__":"a"}}'), '__proto__:="a"'],
  [{ terms: { f: ['a', 'b'] } }, '(~f:="a"/1 ~f:="b"/1)'],
  [{ terms: { f: [1] }, boost: 2 }, 'f:=1^2'],
  [{ terms: { f: ['a'], boost: 3 } }, 'f:="a"^3'],
  [{ terms: { boost: ['a'] } }, 'boost:="a"'],
  [{ terms: { f: [] } }, 'none'],
  [{ prefix: 'a', field: 'f' }, 'f:a*'],
  [{ prefix: { f: 'a' } }, 'f:a*'],
  [{ prefix: { f: { value: 'a', boost: 2 } } }, 'f:a*^2'],
  // Ranges
  [{ min: 1, max: 5, field: 'n' }, 'n[gte=1 lt=5 number]'],
  [{ min: 1, inclusive_min: false, field: 'n' }, 'n[gt=1 number]'],
  [{ max: 5, inclusive_max: true, field: 'n', min: null }, 'n[lte=5 number]'],
  [{ min: 'a', max: 'm', field: 'f' }, 'f[gte="a" lt="m" term]'],
  [
    { start: '2020-01-01', end: '2021-01-01T00:00:00Z', field: 'at' },
    'at[gte="2020-01-01" lt="2021-01-01T00:00:00Z" date]',
  ],
  [{ start: '2020-01-01', inclusive_start: false, field: 'at', boost: 2 }, 'at[gt="2020-01-01" date]^2'],
  [{ end: '2020-01-01', inclusive_end: true, field: 'at' }, 'at[lte="2020-01-01" date]'],
  [{ range: { n: { gte: 1, lt: 5 } } }, 'n[gte=1 lt=5]'],
  [{ range: { n: { gt: 1 } }, boost: 2 }, 'n[gt=1]^2'],
  [{ range: { field: 'n', gte: 1 } }, 'n[gte=1]'],
  [{ range: { field: { gte: 1 } } }, 'field[gte=1]'],
  [{ range: { at: { gte: '2020-01-01', lte: '2020-12-31', boost: 2 } } }, 'at[gte="2020-01-01" lte="2020-12-31"]^2'],
  [{ numeric_range: { field: 'n', min: 1, max: 5 } }, 'n[gte=1 lt=5 number]'],
  [{ numeric_range: { n: { gt: 1 } } }, 'n[gt=1 number]'],
  [{ date_range: { field: 'at', start: '2020-01-01' } }, 'at[gte="2020-01-01" date]'],
  [{ date_range: { at: { lt: '2020-01-01' } } }, 'at[lt="2020-01-01" date]'],
  [{ term_range: { field: 'f', min: 'a', max: 'm' } }, 'f[gte="a" lt="m" term]'],
  // Conjunctions and disjunctions
  [{ conjuncts: [a, b] }, '(+a|or +b|or)'],
  [{ conjuncts: [a, b], boost: 2 }, '(+a|or +b|or)^2'],
  [{ conjuncts: [] }, 'all'],
  [[a, b], '(+a|or +b|or)'],
  [[], 'all'],
  [[a], 'a|or'],
  [{ disjuncts: [a, b] }, '(~a|or/1 ~b|or/1)'],
  [{ disjuncts: [a, b], min: 0 }, '(~a|or/1 ~b|or/1)'],
  [{ disjuncts: [a, b, c], min: 2 }, '(~a|or/2 ~b|or/2 ~c|or/2)'],
  [{ disjuncts: [a], min: 2 }, 'none'],
  [{ disjuncts: [] }, 'none'],
  // Boolean, older spelling
  [{ must: { conjuncts: [a, b] }, should: { disjuncts: [c], min: 0 } }, '(+a|or +b|or ~c|or/0)'],
  [{ must: { conjuncts: [a] }, should: { disjuncts: [b, c], min: 1 } }, '(+a|or ~b|or/1 ~c|or/1)'],
  [{ should: { disjuncts: [b, c], min: 0 } }, '(~b|or/1 ~c|or/1)'],
  [{ must_not: { disjuncts: [a, b] } }, '(-a|or -b|or)'],
  [{ must_not: { disjuncts: [a, b, c], min: 2 } }, '(-(~a|or/2 ~b|or/2 ~c|or/2))'],
  [{ must_not: { conjuncts: [a, b] } }, '(-(+a|or +b|or))'],
  [{ must: a, filter: b, boost: 2 }, '(+a|or #b|or)^2'],
  [{ filter: a }, '(#a|or)'],
  // Bool
  [{ bool: { must: [a], should: [b], must_not: [c], filter: [a] } }, '(+a|or ~b|or/0 -c|or #a|or)'],
  [{ bool: { must: a, boost: 2 }, boost: 2 }, '(+a|or)^4'],
  [{ bool: { should: [a, b] } }, '(~a|or/1 ~b|or/1)'],
  [{ bool: { should: [a, b], minimum_should_match: 2 } }, '(~a|or/2 ~b|or/2)'],
  [{ bool: { should: [a, b], minimum_should_match: 0 } }, '(~a|or/0 ~b|or/0 #all)'],
  [{ bool: { should: [a], minimum_should_match: 2 } }, 'none'],
  [{ bool: { must: a, minimum_should_match: 1 } }, 'none'],
  [{ bool: { filter: [a], should: [b] } }, '(~b|or/0 #a|or)'],
  [{ bool: { must_not: [a, b] } }, '(-a|or -b|or)'],
  [{ bool: {} }, 'all'],
  [{ bool: { must: [], filter: [] } }, 'all'],
  [{ bool: { must: [{ bool: { should: [a, b] } }] } }, '(+(~a|or/1 ~b|or/1))'],
  [{ bool: true, field: 'f' }, 'f=true'],
  [{ bool: false, field: 'f', boost: 2 }, 'f=false^2'],
  // The rest
  [{ match_all: {} }, 'all'],
  [{ match_all: {}, boost: 2 }, 'all^2'],
  [{ match_all: null }, 'all'],
  [{ match_all: null, boost: 2 }, 'all^2'],
  [{ match_none: null }, 'none'],
  [{ match: 'a', match_phrase: null }, 'a|or'],
  [{ match_none: {} }, 'none'],
  [{ ids: ['a', 'b'] }, 'ids(a,b)'],
  [{ ids: [] }, 'none'],
  [{ doc_id: { ids: ['a'] }, boost: 2 }, 'ids(a)^2'],
  [{ exists: { field: 'f' } }, 'exists(f)'],
  [{ exists: { path: '/f/g' }, boost: 3 }, 'exists(f.g)^3'],
  [{ multi_match: { query: 'so', type: 'bool_prefix', fields: ['t', 'u^2.5'] } }, 'bool_prefix(t^1,u^2.5: so)'],
  [{ multi_match: { query: 'so', type: 'bool_prefix', fields: ['t'], boost: 2 } }, 'bool_prefix(t^1: so)^2'],
];

const invalid: [node: unknown, words: string][] = [
  ['soup', 'must be a query node such as {"query": "soup"}'],
  [5, 'must be a query node'],
  [{}, 'the node is empty'],
  [{ match: null }, 'the node is empty'],
  [{ mach: 'a' }, 'Did you mean "match"?'],
  [{ match: 'a', feild: 'f' }, 'unknown member "feild". Did you mean "field"?'],
  [{ match: 'a', term: 'b' }, '"match" and "term"'],
  [{ query: 'a AND' }, 'q.query'],
  [{ query: 5 }, '"query" must be a string'],
  [{ query: 'a', default_operator: 'xor' }, '"default_operator"'],
  [{ match: [] }, '"match" must be a text'],
  [{ match: { f: 'a', g: 'b' } }, 'one field'],
  [{ match: { f: { text: 'a', bost: 2 } } }, 'Did you mean "boost"?'],
  [{ match: { f: {} } }, 'needs a "text"'],
  [{ match: 'a', operator: 'nor' }, '"operator"'],
  [{ match: 'a', boost: -1 }, '"boost"'],
  [{ match: 'a', boost: 'x' }, '"boost"'],
  [{ match: 'a', field: '' }, '"field" must not be empty'],
  [{ match: 'a', field: 'f', path: '/f' }, 'not both'],
  [{ match: 'a', path: 'f' }, 'JSON pointer'],
  [{ match: 'a', field: 5 }, '"field" must be a string'],
  [{ match_phrase: 'a', slop: 1.5 }, '"slop"'],
  [{ match_phrase: 'a', slop: 101 }, '"slop"'],
  [{ term: { f: [] } }, 'a term must be'],
  [{ terms: { f: 'a' } }, 'one field and its values'],
  [{ terms: { f: ['a'], g: ['b'] } }, 'one field'],
  [{ terms: { f: [{}] } }, 'a term must be'],
  [{ terms: 'a' }, '"terms" must'],
  [{ prefix: '' }, '"prefix"'],
  [{ min: 1 }, 'needs a "field"'],
  [{ min: '1', max: 5, field: 'n' }, 'both be numbers or both be strings'],
  [{ min: true, field: 'n' }, '"min"'],
  [{ start: 'yesterday', field: 'at' }, '"start" must be a date'],
  [{ start: '2020-02-30', field: 'at' }, '"start" must be a date'],
  [{ start: 5, field: 'at' }, '"start"'],
  [{ range: { n: { gte: 1, gt: 1 } } }, '"gt" or "gte"'],
  [{ range: { n: { lte: 1, lt: 1 } } }, '"lt" or "lte"'],
  [{ range: { n: {} } }, 'at least one bound'],
  [{ range: { n: { gteq: 1 } } }, 'Did you mean "gte"?'],
  [{ range: { n: { gte: 1 }, m: { gte: 1 } } }, 'one field'],
  [{ range: 5 }, 'must name a field'],
  [{ numeric_range: { n: { gte: 'a' } } }, '"gte" must be a number'],
  [{ numeric_range: { field: 'n', start: '2020-01-01' } }, '"min" and "max"'],
  [{ date_range: { at: { gte: 'soon' } } }, 'must be a date'],
  [{ conjuncts: [a, 5] }, 'q.conjuncts[1]'],
  [{ conjuncts: [a, { disjuncts: [{ mtch: 'x' }] }] }, 'q.conjuncts[1].disjuncts[0]'],
  [{ disjuncts: [a], min: -1 }, '"min"'],
  [{ disjuncts: [a], min: 0.5 }, '"min"'],
  [{ bool: { most: [a] } }, 'Did you mean "must"?'],
  [{ bool: { should: [a], minimum_should_match: '75%' } }, '"minimum_should_match"'],
  [{ bool: 'yes', field: 'f' }, 'true or false'],
  [{ bool: true }, 'needs a "field"'],
  [{ match_all: 1 }, '"match_all" must be an object'],
  [{ match_all: { x: 1 } }, 'unknown member'],
  [{ ids: 'a' }, 'array of strings'],
  [{ ids: [1] }, 'array of strings'],
  [{ doc_id: ['a'] }, 'object with "ids"'],
  [{ exists: 'f' }, 'object with "field"'],
  [{ exists: {} }, 'needs a "field"'],
  [{ multi_match: { query: 'a', fields: ['f'] } }, '"type" must be "bool_prefix"'],
  [{ multi_match: { query: 'a', fields: ['f'], type: 'phrase' } }, '"type" must be "bool_prefix"'],
  [{ multi_match: { query: ' ', fields: ['f'], type: 'bool_prefix' } }, '"query"'],
  [{ multi_match: { query: 'a', fields: [], type: 'bool_prefix' } }, 'at least one field'],
  [{ multi_match: { query: 'a', fields: ['f^x'], type: 'bool_prefix' } }, 'title^2'],
  [{ multi_match: 'a' }, 'must be an object'],
];

describe('query nodes', () => {
  for (const [node, plan] of nodes) {
    test(`${JSON.stringify(node)} means ${plan}`, () => expect(showPlan(read(node))).toBe(plan));
  }

  for (const [node, words] of invalid) {
    test(`${JSON.stringify(node)} is refused: ${words}`, () => {
      const error = failure(node);
      expect(error.code).toBe('invalid_query');
      expect(error.message).toContain(words);
    });
  }

  test('every plan node carries all the members that the engine expects', () => {
    expect(read({ bool: { must: [a] } })).toEqual({
      kind: 'bool',
      must: [{ kind: 'match', text: 'a', operator: 'or', boost: 1 }],
      should: [],
      must_not: [],
      filter: [],
      boost: 1,
    });
    expect(read({ match_phrase: 'a' })).toEqual({ kind: 'phrase', text: 'a', slop: 0, boost: 1 });
    expect(read({ exists: { field: 'f' } })).toEqual({ kind: 'exists', field: 'f', boost: 1 });
  });

  test('clauses are counted over all nodes and the query strings inside', () => {
    expect(failure({ conjuncts: Array(1_024).fill(a) }).code).toBe('limit_exceeded');
    expect(failure({ terms: { f: Array(1_025).fill('x') } }).code).toBe('limit_exceeded');
    expect(failure({ conjuncts: [{ query: 'a '.repeat(600) }, { query: 'b '.repeat(600) }] }).code).toBe(
      'limit_exceeded',
    );
    expect(failure({ ids: Array(10_001).fill('x') }).code).toBe('limit_exceeded');
  });

  test('deep nesting is refused before the stack is', () => {
    let node: unknown = a;
    for (let level = 0; level < 10_000; level += 1) node = [node];
    expect(failure(node).code).toBe('limit_exceeded');
    let wrapped: unknown = a;
    for (let level = 0; level < 10_000; level += 1) wrapped = { must: { conjuncts: [wrapped] } };
    expect(failure(wrapped).code).toBe('limit_exceeded');
  });

  test('whatever JSON is sent as a node is planned or answered with an error of ours', () => {
    const names = fc.constantFrom(
      ...[
        'query',
        'match',
        'term',
        'terms',
        'bool',
        'must',
        'should',
        'filter',
        'conjuncts',
        'disjuncts',
        'min',
        'max',
      ],
      ...['field', 'boost', 'range', 'start', 'ids', 'exists', 'multi_match', 'prefix', 'fields', 'type', '__proto__'],
    );
    const { node } = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<unknown>('a', 'a AND b', '2020-01-01', 1, -0.5, true, null, 'bool_prefix'),
        fc.array(tie('node'), { maxLength: 3 }),
        fc.dictionary(names, tie('node'), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(node, (value) => {
        try {
          showPlan(read(value));
        } catch (error) {
          expect(error).toBeInstanceOf(ServiceError);
        }
      }),
      { numRuns: 3_000 },
    );
  });
});
