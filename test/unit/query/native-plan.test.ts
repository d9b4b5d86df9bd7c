import { expect, test } from 'bun:test';
import type {
  calendarIntervals,
  cardinalityModes,
  NumberMetric,
  PlanAggregationKind,
  significanceAlgorithms,
} from '../../../src/query/aggregations/aggregation-plan.ts';
import type { NativePlan, PlanFusion, PlanLeg } from '../../../src/query/plan/native-plan.ts';
import type { MatchNode, PlanNode, RangeNode } from '../../../src/query/plan/plan-nodes.ts';
import type { Fuzziness, GeoShapeNode } from '../../../src/query/plan/word-plan-nodes.ts';
import fixture from '../../fixtures/native-plan.json';

/**
 * The plan of a query is written down twice, here and in `native/engine/src/full_text/plan`. One fixture holds a sample of
 * every node, aggregation and plan with all of its members: this test keeps it to the types of this side, and
 * `native/engine/tests/engine/plan_fixture.rs` to those of the other.
 */

type Of<Union extends { kind: string }> = { [Kind in Union['kind']]: Required<Extract<Union, { kind: Kind }>> };

const none: PlanNode = { kind: 'match_none' };
const ranges = [{ name: 'r', from: 1.5, to: 2.5 }];

const nodes: Of<PlanNode> = {
  match_all: { kind: 'match_all', boost: 1.5 },
  match_none: { kind: 'match_none' },
  match: {
    kind: 'match',
    field: 'title',
    text: 'leek soup',
    operator: 'and',
    analyzer: 'german',
    fuzziness: 'auto',
    prefix_length: 1,
    boost: 1.5,
  },
  phrase: {
    kind: 'phrase',
    field: 'title',
    text: 'leek soup',
    slop: 2,
    analyzer: 'simple',
    fuzziness: 1,
    prefix_length: 1,
    boost: 1.5,
  },
  term: { kind: 'term', field: 'tag', value: 'x', boost: 1.5 },
  prefix: { kind: 'prefix', field: 'tag', value: 'x', boost: 1.5 },
  range: { kind: 'range', field: 'n', gt: 1, gte: 2, lt: 3, lte: 4, of: 'number', boost: 1.5 },
  bool_prefix: { kind: 'bool_prefix', fields: [{ field: 'title', boost: 2.5 }], text: 'le', boost: 1.5 },
  bool: { kind: 'bool', must: [none], should: [none], must_not: [none], filter: [none], min_should: 1, boost: 1.5 },
  ids: { kind: 'ids', ids: ['a'], boost: 1.5 },
  bool_field: { kind: 'bool_field', field: 'vegan', value: true, boost: 1.5 },
  exists: { kind: 'exists', field: 'n', boost: 1.5 },
  fuzzy: { kind: 'fuzzy', field: 'title', value: 'leak', fuzziness: 'typo', prefix_length: 1, boost: 1.5 },
  wildcard: { kind: 'wildcard', field: 'title', pattern: 'l?ek*', boost: 1.5 },
  regexp: { kind: 'regexp', field: 'title', pattern: 'le+k', boost: 1.5 },
  terms_phrase: {
    kind: 'terms_phrase',
    field: 'title',
    terms: [['leek', 'onion'], ['soup']],
    slop: 1,
    fuzziness: 1,
    boost: 1.5,
  },
  ip_range: { kind: 'ip_range', field: 'ip', cidr: '10.0.0.0/8', boost: 1.5 },
  geo_box: { kind: 'geo_box', field: 'at', top_left: [-1.5, 2.5], bottom_right: [1.5, -2.5], boost: 1.5 },
  geo_distance: { kind: 'geo_distance', field: 'at', center: [1.5, 2.5], meters: 1000.5, boost: 1.5 },
  geo_polygon: {
    kind: 'geo_polygon',
    field: 'at',
    points: [
      [0.5, 0.5],
      [1.5, 0.5],
      [1.5, 1.5],
    ],
    boost: 1.5,
  },
  geo_shape: {
    kind: 'geo_shape',
    field: 'area',
    geometry: { type: 'Point', coordinates: [1, 2] },
    relation: 'within',
    boost: 1.5,
  },
};

const aggregations: Of<PlanAggregationKind> = {
  numbers: { kind: 'numbers', field: 'n', metric: 'stats' },
  count: { kind: 'count', field: 'n' },
  cardinality: { kind: 'cardinality', field: 'n', mode: 'exact' },
  terms: { kind: 'terms', fields: ['a', 'b'], size: 10, min_doc_count: 0, background: 0 },
  significant_terms: {
    kind: 'significant_terms',
    field: 'a',
    size: 10,
    min_doc_count: 1,
    algorithm: 'jlh',
    background: 0,
  },
  range: { kind: 'range', field: 'n', ranges },
  date_range: {
    kind: 'date_range',
    field: 'd',
    ranges: [{ name: 'r', from: '2024-01-01T00:00:00Z', to: '2025-01-01T00:00:00Z' }],
  },
  histogram: { kind: 'histogram', field: 'n', interval: 2.5, min_doc_count: 0, size: 5 },
  date_histogram: { kind: 'date_histogram', field: 'd', calendar_interval: 'month', min_doc_count: 0, size: 5 },
  geohash_grid: { kind: 'geohash_grid', field: 'at', precision: 5, size: 10 },
  geo_distance: { kind: 'geo_distance', field: 'at', lat: 1.5, lon: 2.5, unit_meters: 1000.5, ranges },
};

const plan: Required<NativePlan> & { legs: Required<PlanLeg>[]; pruner: Required<NativePlan['pruner']> } = {
  query: none,
  filter: [none],
  exclusion: [none],
  row_filter: [none],
  key_prefix: 'a',
  has_text_index: true,
  text_index_comes: true,
  expired_at_or_before_ms: 5,
  limit: 10,
  offset: 1,
  sort: [{ field: 'n', desc: true }],
  cursor: { position: '["b1"]', key: 'k', before: true },
  count_only: true,
  exact_total: true,
  total_exact_up_to: 1_000,
  explain: true,
  profile: true,
  aggregations: {
    list: [{ name: 'a', of: { kind: 'count', field: 'n' }, sub: [] }],
    backgrounds: [{ field: 'a', filter: none }],
  },
  counted_paths: ['n'],
  timeout_ms: 1_000,
  allows_partial: true,
  legs: [{ name: 'v', kind: 'dense', bytes: 8, weight: 1.5, effort: 0.5 }],
  text_weight: 0.5,
  fusion: { strategy: 'rsf', rank_constant: 60.5, window: 10 },
  distance_under: 0.5,
  distance_over: 0.25,
  pruner: {
    require_multi_index: true,
    min_absolute_score: 0.5,
    min_score_ratio: 0.5,
    std_dev_threshold: 0.5,
    max_score_gap_percent: 50.5,
  },
};

/** Every word of a union: one that is missing, or too many, does not compile. */
function wordsOf<Word extends string>(words: Record<Word, true>): string[] {
  return Object.keys(words);
}

const words = {
  operator: wordsOf<MatchNode['operator']>({ or: true, and: true }),
  fuzziness: wordsOf<Extract<Fuzziness, string>>({ auto: true, typo: true }),
  range_kind: wordsOf<RangeNode['of']>({ auto: true, number: true, date: true, term: true }),
  relation: wordsOf<GeoShapeNode['relation']>({ intersects: true, contains: true, within: true }),
  leg_kind: wordsOf<PlanLeg['kind']>({ dense: true, sparse: true, graph: true }),
  strategy: wordsOf<PlanFusion['strategy']>({ rrf: true, rsf: true, failover: true }),
  metric: wordsOf<NumberMetric>({ sum: true, avg: true, min: true, max: true, sumsquares: true, stats: true }),
  mode: wordsOf<(typeof cardinalityModes)[number]>({ auto: true, exact: true, approximate: true }),
  calendar_interval: wordsOf<(typeof calendarIntervals)[number]>({
    minute: true,
    hour: true,
    day: true,
    week: true,
    month: true,
    quarter: true,
    year: true,
  }),
  algorithm: wordsOf<(typeof significanceAlgorithms)[number]>({
    jlh: true,
    mutual_information: true,
    chi_squared: true,
    percentage: true,
  }),
};

test('the plan that both languages hold is the one of the fixture', () => {
  expect({ plan, nodes, aggregations, words } as unknown).toEqual(fixture as unknown);
});
