import { describe, expect, test } from 'bun:test';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { QueryBudget } from '../../../src/query/nodes/query-budget.ts';
import { readQueryNode } from '../../../src/query/nodes/query-nodes.ts';
import { planQuery } from '../../../src/query/plan/query-plan.ts';
import { showPlan } from '../../support/show-plan.ts';

function read(node: unknown): string {
  return showPlan(readQueryNode(node, { where: 'query', depth: 0, budget: new QueryBudget() }));
}

function failure(run: () => unknown): ServiceError {
  try {
    run();
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('did not fail');
}

function deeplyNested(): unknown {
  let shape: unknown = { type: 'Point', coordinates: [1, 2] };
  for (let level = 0; level < 8; level += 1) shape = { type: 'GeometryCollection', geometries: [shape] };
  return shape;
}

const nodes: [node: unknown, plan: string][] = [
  [{ wildcard: 'a*b', field: 'f' }, 'f:wild(a*b)'],
  [{ wildcard: { f: 'a?b' } }, 'f:wild(a?b)'],
  [{ wildcard: { f: { value: 'a?b', boost: 2 } }, boost: 2 }, 'f:wild(a?b)^4'],
  [{ regexp: 'a.b' }, '/a.b/'],
  [{ regexp: { f: 'a.b' } }, 'f:/a.b/'],
  [{ fuzzy: { f: 'soup' } }, 'f:soup~auto'],
  [{ fuzzy: { f: { value: 'soup', fuzziness: 1, prefix_length: 2 } } }, 'f:soup~1/2'],
  [{ term: 'soup', fuzziness: 2, prefix_length: 1, field: 'f' }, 'f:soup~2/1'],
  [{ term: 'soup', fuzziness: '1' }, 'soup~1'],
  [{ term: 'soup', fuzziness: 0 }, '="soup"'],
  [{ match: 'a b', fuzziness: 'AUTO' }, 'a b|or~auto'],
  [{ match: { f: { query: 'a b', fuzziness: 1, operator: 'and' } } }, 'f:a b~1'],
  [{ match_phrase: 'a b', fuzziness: 1 }, '"a b"~1'],
  [{ terms: ['a', 'b'], field: 'f' }, 'f:[a b]'],
  [{ terms: [['a', 'b'], ['c']], fuzziness: 1 }, '[a|b c]~1'],
  [{ cidr: '10.0.0.0/8', field: 'ip' }, 'ip:net(10.0.0.0/8)'],
  [{ ip_range: { ip: '10.0.0.0/8' } }, 'ip:net(10.0.0.0/8)'],
  [{ ip_range: { field: 'ip', cidr: '::/0' } }, 'ip:net(::/0)'],
  [{ top_left: [0, 1], bottom_right: [1, 0], field: 'g' }, 'g:box(0,1 1,0)'],
  [{ geo_bounding_box: { g: { top_left: '1,170', bottom_right: { lon: -170, lat: 0 } } } }, 'g:box(170,1 -170,0)'],
  [{ location: [7.5, 47], distance: '10km', field: 'g' }, 'g:near(7.5,47 10000)'],
  [{ location: { lon: 7.5, lat: 47 }, distance: '1.5 mi', field: 'g' }, 'g:near(7.5,47 2414.016)'],
  [{ geo_distance: { distance: 500, g: '47,7.5' } }, 'g:near(7.5,47 500)'],
  [{ polygon_points: [{ lon: 0, lat: 0 }, [1, 0], '1,1'], field: 'g' }, 'g:polygon(0,0 1,0 1,1)'],
  [
    { geometry: { shape: { type: 'Point', coordinates: [1, 2] }, relation: 'WITHIN' }, field: 'g' },
    'g:within({"type":"Point","coordinates":[1,2]})',
  ],
  [{ start: '2020-01-01', field: 'at', datetime_parser: 'default' }, 'at[gte="2020-01-01" date]'],
];

const refused: [node: unknown, words: string][] = [
  [{ wildcard: '' }, '"wildcard"'],
  [{ regexp: 'a'.repeat(1_001) }, 'at most 1000'],
  [{ fuzzy: { f: 1 } }, '"fuzzy"'],
  [{ term: 5, fuzziness: 1, field: 'f' }, 'must be a word'],
  [{ match: 'a', fuzziness: 3 }, '"fuzziness"'],
  [{ match: 'a', fuzziness: 0.5 }, '"fuzziness"'],
  [{ match: 'a', fuzziness: 1, prefix_length: -1 }, '"prefix_length"'],
  [{ terms: [] }, 'at least one word'],
  [{ terms: ['a', []] }, 'at least one word'],
  [{ terms: ['a', 5] }, 'array of strings'],
  [{ terms: Array(65).fill('a') }, 'at most 64'],
  [{ cidr: '10.0.0.0/8' }, '"field"'],
  [{ cidr: 10, field: 'ip' }, '"cidr"'],
  [{ top_left: [0, 0], bottom_right: [1, 1], field: 'g' }, 'below'],
  [{ top_left: [0, 1], field: 'g' }, 'bottom_right'],
  [{ top_left: [0, 91], bottom_right: [1, 0], field: 'g' }, 'degrees'],
  [{ location: [0, 1], distance: '10 parsecs', field: 'g' }, 'distance'],
  [{ location: [0, 1], field: 'g' }, 'distance'],
  [{ location: [0, 1], distance: -1, field: 'g' }, 'distance'],
  [
    {
      polygon_points: [
        [0, 0],
        [1, 1],
      ],
      field: 'g',
    },
    'from 3',
  ],
  [{ geometry: {}, field: 'g' }, 'GeoJSON'],
  [{ geometry: { shape: { type: 'Point' }, relation: 'touches' }, field: 'g' }, '"relation"'],
  [{ geometry: { shape: deeplyNested() }, field: 'g' }, 'at most 16 levels'],
  [{ ref: 'mine' }, '"with" is missing'],
  [{ start: '2020-01-01', field: 'at', datetime_parser: 'x' }, '"datetime_parser"'],
];

describe('nodes about words and places', () => {
  for (const [node, plan] of nodes) {
    test(`${JSON.stringify(node)} means ${plan}`, () => expect(read(node)).toBe(plan));
  }

  for (const [node, words] of refused) {
    test(`${JSON.stringify(node).slice(0, 100)} is refused: ${words}`, () => {
      const error = failure(() => read(node));
      expect(error.code).toBe('invalid_query');
      expect(error.message).toContain(words);
    });
  }

  test('each fuzzy word of a text counts towards the bound of walks', () => {
    expect(() => read({ match: 'word '.repeat(64), fuzziness: 1 })).not.toThrow();
    expect(failure(() => read({ match: 'word '.repeat(65), fuzziness: 1 })).code).toBe('limit_exceeded');
    expect(failure(() => read({ conjuncts: Array(65).fill({ wildcard: 'a*b' }) })).code).toBe('limit_exceeded');
  });
});

describe('named filters', () => {
  const context = { name: 't', nowMs: 0 };
  const plan = (request: Record<string, unknown>) => planQuery(request, context).plan;

  test('a reference means what is named, wherever it stands', () => {
    const named = {
      vegan: { term: true, field: 'vegan' },
      quick: { conjuncts: [{ ref: 'vegan' }, { query: 'quick' }] },
    };
    const { query, filter } = plan({
      with: named,
      full_text_search: { disjuncts: [{ ref: 'quick' }, { ref: 'vegan', boost: 2 }] },
      filter_query: { ref: 'vegan' },
    });
    expect(query && showPlan(query)).toBe('(~(+vegan:=true +quick)/1 ~vegan:=true^2/1)');
    expect(filter.map(showPlan)).toEqual(['vegan:=true']);
  });

  test('unknown names, loops and bad definitions are refused', () => {
    for (const [request, words] of [
      [{ with: { vegan: { query: 'a' } }, filter_query: { ref: 'vegam' } }, 'Did you mean "vegan"?'],
      [{ with: { a: { ref: 'b' }, b: { ref: 'a' } }, filter_query: { ref: 'a' } }, 'refers to itself'],
      [{ with: { a: { ref: 'a' } } }, 'refers to itself'],
      [{ with: { a: { sooup: 1 } } }, 'with.a'],
      [{ with: [] }, 'must be an object'],
      [{ with: { a: { query: 'a' } }, filter_query: { ref: '__proto__' } }, 'no filter'],
    ] as const) {
      const error = failure(() => plan(request));
      expect(error.code).toBe('invalid_query');
      expect(error.message).toContain(words);
    }
  });

  test('references that multiply are stopped by the bound of clauses', () => {
    const named: Record<string, unknown> = { f0: { query: 'a' } };
    for (let level = 1; level <= 20; level += 1) {
      named[`f${level}`] = { conjuncts: [{ ref: `f${level - 1}` }, { ref: `f${level - 1}` }] };
    }
    expect(failure(() => plan({ with: named, filter_query: { ref: 'f20' } })).code).toBe('limit_exceeded');
  });
});
