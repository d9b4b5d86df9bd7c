import { limits } from '../../config/limits.ts';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { checkMembers, invalidQuery, isObject, type Members, member, readString } from '../nodes/query-members.ts';
import { type AggregationKindReader, type AggregationScope, aggregationReaders } from './aggregation-kinds.ts';
import type { AggregationPlan, PlanAggregation } from './aggregation-plan.ts';

const nameCharsMax = 255;

/**
 * The aggregations of a request, from its `aggregations` and the shorter `facets`; undefined when it has none.
 * Fails with `invalid_query`, `limit_exceeded` or `not_implemented`.
 */
export function readAggregations(
  request: Members,
  shared: Pick<AggregationScope, 'nowMs' | 'budget' | 'filters'>,
): AggregationPlan | undefined {
  const [named, facets] = [member(request, 'aggregations'), member(request, 'facets')];
  if (named === undefined && facets === undefined) return undefined;
  const scope: AggregationScope = { ...shared, where: 'aggregations', depth: 1, backgrounds: [], counted: { all: 0 } };
  const list = [
    ...(named === undefined ? [] : readList(named, scope)),
    ...(facets === undefined ? [] : readFacets(facets, { ...scope, where: 'facets' })),
  ];
  const names = new Set<string>();
  for (const { name } of list) {
    if (names.has(name)) throw invalidQuery('facets', `"${name}" is an aggregation already`);
    names.add(name);
  }
  return list.length === 0 ? undefined : { list, backgrounds: scope.backgrounds };
}

/** A map of names to aggregations. */
function readList(value: unknown, scope: AggregationScope): PlanAggregation[] {
  if (!isObject(value)) {
    throw invalidQuery(scope.where, 'must be an object such as {"by_tag": {"type": "terms", "field": "tag"}}');
  }
  return Object.entries(value).map(([name, entry]) => readOne(name, entry, scope));
}

function readOne(name: string, value: unknown, scope: AggregationScope): PlanAggregation {
  if (name === '' || name.length > nameCharsMax) {
    throw invalidQuery(scope.where, `the name of an aggregation has 1 to ${nameCharsMax} characters`);
  }
  const where = `${scope.where}.${name}`;
  if (scope.depth > limits.aggregationNestingMax) {
    throw new ServiceError(
      'limit_exceeded',
      `${where}: aggregations nest at most ${limits.aggregationNestingMax} levels`,
    );
  }
  scope.counted.all += 1;
  if (scope.counted.all > limits.aggregationsMax) {
    throw new ServiceError('limit_exceeded', `a query has at most ${limits.aggregationsMax} aggregations`);
  }
  if (!isObject(value)) throw invalidQuery(where, 'must be an object such as {"type": "terms", "field": "tag"}');
  if (member(value, 'algebraic_join') !== undefined) {
    throw new ServiceError('not_implemented', `${where}: "algebraic_join" is not built yet`);
  }
  const type = readString(value, 'type', where);
  if (type === undefined) throw invalidQuery(where, `needs a "type": ${[...aggregationReaders.keys()].join(', ')}`);
  const reader = aggregationReaders.get(type);
  if (reader === undefined) {
    throw invalidQuery(
      where,
      `no aggregation has the type "${type.slice(0, 64)}".${suggestion(type, aggregationReaders.keys())}`,
    );
  }
  return readAs(reader, name, value, { ...scope, where });
}

function readAs(reader: AggregationKindReader, name: string, value: Members, scope: AggregationScope): PlanAggregation {
  const { where } = scope;
  const { members, makesBuckets, read } = reader;
  const sub = member(value, 'sub_aggregations');
  checkMembers(value, ['type', 'sub_aggregations', 'algebraic_join', ...members], where);
  if (sub !== undefined && !makesBuckets)
    throw invalidQuery(where, 'only aggregations that make buckets have "sub_aggregations"');
  const of = read(value, scope);
  const inside = { ...scope, where: `${where}.sub_aggregations`, depth: scope.depth + 1 };
  return { name, of, sub: sub === undefined ? [] : readList(sub, inside) };
}

/** Counts of values: `["tag"]`, or `{"tags": {"field": "tag", "size": 5}}`. */
function readFacets(value: unknown, scope: AggregationScope): PlanAggregation[] {
  if (Array.isArray(value)) {
    return value.map((field: unknown) => {
      if (typeof field !== 'string') throw invalidQuery(scope.where, 'must be an array of paths, or an object');
      return readOne(field, { type: 'terms', field }, scope);
    });
  }
  if (!isObject(value)) throw invalidQuery(scope.where, 'must be an array of paths, or an object');
  return Object.entries(value).map(([name, facet]) => {
    if (!isObject(facet)) throw invalidQuery(`${scope.where}.${name}`, 'must be an object such as {"field": "tag"}');
    if ((member(facet, 'type') ?? 'terms') !== 'terms') {
      throw invalidQuery(`${scope.where}.${name}`, 'a facet is a "terms" aggregation; use "aggregations" for others');
    }
    const hasField = ['field', 'path', 'fields'].some((each) => member(facet, each) !== undefined);
    return readOne(name, { ...facet, type: 'terms', ...(hasField ? {} : { field: name }) }, scope);
  });
}
