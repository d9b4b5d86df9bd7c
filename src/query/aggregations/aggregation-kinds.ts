import { limits } from '../../config/limits.ts';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { DateMathError, readDateMath } from '../nodes/date-math.ts';
import type { NamedFilters } from '../nodes/named-filters.ts';
import type { QueryBudget } from '../nodes/query-budget.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  readInteger,
  readString,
  readStrings,
  requireField,
} from '../nodes/query-members.ts';
import { readQueryNode } from '../nodes/query-nodes.ts';
import {
  calendarIntervals,
  cardinalityModes,
  type NumberMetric,
  numberMetrics,
  type PlanAggregationKind,
  type PlanBackground,
  type PlanRange,
  significanceAlgorithms,
} from './aggregation-plan.ts';

export interface AggregationScope {
  /** For messages. */
  where: string;
  depth: number;
  /** The value of `now` in date ranges. */
  nowMs: number;
  budget: QueryBudget;
  /** The filters that `ref` names in background filters. */
  filters?: NamedFilters | undefined;
  /** The backgrounds that all aggregations of the request have collected. */
  backgrounds: PlanBackground[];
  counted: { all: number };
}

/** How one type of aggregation is read. */
export interface AggregationKindReader {
  /** Besides `type` and `sub_aggregations`. */
  members: readonly string[];
  makesBuckets: boolean;
  read(value: Members, scope: AggregationScope): PlanAggregationKind;
}

const sizeDefault = 10;
const geohashPrecisionDefault = 5;
const fieldMembers = ['field', 'path'];
const sizeMembers = ['size', 'min_doc_count'];

const unitMeters: ReadonlyMap<string, number> = new Map([
  ['m', 1],
  ['km', 1_000],
  ['mi', 1_609.344],
  ['ft', 0.3048],
  ['yd', 0.9144],
]);

export const aggregationReaders: ReadonlyMap<string, AggregationKindReader> = new Map<string, AggregationKindReader>([
  ...numberMetrics.map((metric): [string, AggregationKindReader] => [metric, numbersReader(metric)]),
  ['count', { members: fieldMembers, makesBuckets: false, read: readCount }],
  ['cardinality', { members: [...fieldMembers, 'mode'], makesBuckets: false, read: readCardinality }],
  ['terms', { members: [...fieldMembers, 'fields', ...sizeMembers], makesBuckets: true, read: readTerms }],
  ['range', { members: [...fieldMembers, 'ranges'], makesBuckets: true, read: readRange }],
  ['date_range', { members: [...fieldMembers, 'date_ranges'], makesBuckets: true, read: readDateRange }],
  ['histogram', { members: [...fieldMembers, 'interval', ...sizeMembers], makesBuckets: true, read: readHistogram }],
  [
    'date_histogram',
    { members: [...fieldMembers, 'calendar_interval', ...sizeMembers], makesBuckets: true, read: readDateHistogram },
  ],
  ['geohash_grid', { members: [...fieldMembers, 'precision', 'size'], makesBuckets: true, read: readGeohashGrid }],
  [
    'geo_distance',
    { members: [...fieldMembers, 'origin', 'unit', 'distance_ranges'], makesBuckets: true, read: readGeoDistance },
  ],
  [
    'significant_terms',
    {
      members: [...fieldMembers, ...sizeMembers, 'algorithm', 'background_filter'],
      makesBuckets: true,
      read: readSignificantTerms,
    },
  ],
]);

function numbersReader(metric: NumberMetric): AggregationKindReader {
  const read: AggregationKindReader['read'] = (value, { where }) => ({
    kind: 'numbers',
    field: requireField(value, where),
    metric,
  });
  return { members: fieldMembers, makesBuckets: false, read };
}

function readCount(value: Members, { where }: AggregationScope): PlanAggregationKind {
  const isOfDocuments = member(value, 'field') === undefined && member(value, 'path') === undefined;
  return isOfDocuments ? { kind: 'count' } : { kind: 'count', field: requireField(value, where) };
}

function readCardinality(value: Members, { where }: AggregationScope): PlanAggregationKind {
  const mode = readChoice(value, 'mode', cardinalityModes, where) ?? 'auto';
  return { kind: 'cardinality', field: requireField(value, where), mode };
}

function readTerms(value: Members, scope: AggregationScope): PlanAggregationKind {
  const { where } = scope;
  const fields = readStrings(value, 'fields', limits.aggregationFieldsMax, where);
  if (fields?.includes('') || fields?.length === 0) throw invalidQuery(where, '"fields" must name paths');
  const single = fieldMembers.find((name) => member(value, name) !== undefined);
  if (fields && single) throw invalidQuery(where, `give "${single}" or "fields", not both`);
  const sizes = readSizes(value, 0, where);
  const terms = { kind: 'terms' as const, fields: fields ?? [requireField(value, where)], ...sizes };
  if (sizes.min_doc_count > 0) return terms;
  // Values without a match are known from all of the table.
  const [field, ...others] = terms.fields;
  if (field === undefined || others.length > 0) {
    throw invalidQuery(where, '"min_doc_count" may be 0 for one field only; for several it is at least 1');
  }
  return { ...terms, background: backgroundOf({ field }, scope) };
}

function readSizes(value: Members, min: number, where: string): { size: number; min_doc_count: number } {
  return { size: readSize(value, where) ?? sizeDefault, min_doc_count: readMinDocCount(value, min, where) ?? 1 };
}

/** Where a background is in the plan; equal ones are there once. */
function backgroundOf(background: PlanBackground, { backgrounds }: AggregationScope): number {
  const known = backgrounds.findIndex((other) => JSON.stringify(other) === JSON.stringify(background));
  return known < 0 ? backgrounds.push(background) - 1 : known;
}

function readSize(value: Members, where: string): number | undefined {
  return readInteger(value, 'size', { min: 1, max: limits.aggregationBucketsMax }, where);
}

function readMinDocCount(value: Members, min: number, where: string): number | undefined {
  return readInteger(value, 'min_doc_count', { min, max: Number.MAX_SAFE_INTEGER }, where);
}

function readRange(value: Members, { where }: AggregationScope): PlanAggregationKind {
  const ranges = readRanges(value, 'ranges', where, (bound, at) => readNumber(bound, at));
  return { kind: 'range', field: requireField(value, where), ranges };
}

function readDateRange(value: Members, { where, nowMs }: AggregationScope): PlanAggregationKind {
  const ranges = readRanges(value, 'date_ranges', where, (bound, at) => {
    if (typeof bound !== 'string') throw invalidQuery(at, 'must be a date such as 2024-02-29 or now-7d');
    try {
      return readDateMath(bound, nowMs);
    } catch (error) {
      if (error instanceof DateMathError) throw invalidQuery(at, error.message);
      throw error;
    }
  });
  return { kind: 'date_range', field: requireField(value, where), ranges };
}

function readRanges<Bound>(
  value: Members,
  name: string,
  where: string,
  readBound: (bound: unknown, at: string) => Bound,
): PlanRange<Bound>[] {
  const ranges = member(value, name);
  if (!Array.isArray(ranges) || ranges.length === 0) {
    throw invalidQuery(where, `"${name}" must be an array of {"name", "from", "to"}`);
  }
  if (ranges.length > limits.aggregationRangesMax) {
    throw new ServiceError('limit_exceeded', `${where}.${name}: has at most ${limits.aggregationRangesMax} entries`);
  }
  return ranges.map((range: unknown, index) => {
    const at = `${where}.${name}[${index}]`;
    if (!isObject(range)) throw invalidQuery(at, 'must be an object such as {"name": "low", "to": 10}');
    checkMembers(range, ['name', 'from', 'to'], at);
    const label = readString(range, 'name', at);
    if (!label) throw invalidQuery(at, 'needs a "name"');
    const [from, to] = [member(range, 'from'), member(range, 'to')];
    return {
      name: label,
      ...(from === undefined ? {} : { from: readBound(from, `${at}.from`) }),
      ...(to === undefined ? {} : { to: readBound(to, `${at}.to`) }),
    };
  });
}

function readNumber(value: unknown, where: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw invalidQuery(where, 'must be a number');
}

function readHistogram(value: Members, { where }: AggregationScope): PlanAggregationKind {
  const interval = readNumber(member(value, 'interval'), `${where}.interval`);
  if (interval <= 0) throw invalidQuery(`${where}.interval`, 'must be a number above 0');
  return { kind: 'histogram', field: requireField(value, where), interval, ...readIntervalOptions(value, where) };
}

function readDateHistogram(value: Members, { where }: AggregationScope): PlanAggregationKind {
  const interval = readChoice(value, 'calendar_interval', calendarIntervals, where);
  if (interval === undefined) {
    throw invalidQuery(where, `needs a "calendar_interval": ${calendarIntervals.join(', ')}`);
  }
  const field = requireField(value, where);
  return { kind: 'date_histogram', field, calendar_interval: interval, ...readIntervalOptions(value, where) };
}

/** All intervals between the first and the last, empty ones too, unless the request says otherwise. */
function readIntervalOptions(value: Members, where: string): { min_doc_count: number; size?: number } {
  const size = readSize(value, where);
  return { min_doc_count: readMinDocCount(value, 0, where) ?? 0, ...(size === undefined ? {} : { size }) };
}

function readGeohashGrid(value: Members, { where }: AggregationScope): PlanAggregationKind {
  const precision = readInteger(value, 'precision', { min: 1, max: 12 }, where) ?? geohashPrecisionDefault;
  return {
    kind: 'geohash_grid',
    field: requireField(value, where),
    precision,
    size: readSize(value, where) ?? sizeDefault,
  };
}

function readGeoDistance(value: Members, { where }: AggregationScope): PlanAggregationKind {
  const unit = readChoice(value, 'unit', [...unitMeters.keys()], where) ?? 'm';
  return {
    kind: 'geo_distance',
    field: requireField(value, where),
    ...readOrigin(value, where),
    unit_meters: unitMeters.get(unit) ?? 1,
    ranges: readRanges(value, 'distance_ranges', where, readNumber),
  };
}

/** `"lat,lon"`. */
function readOrigin(value: Members, where: string): { lat: number; lon: number } {
  const parts = (readString(value, 'origin', where) ?? '').split(',').map((part) => part.trim());
  const [lat = Number.NaN, lon = Number.NaN] = parts.map((part) => (part === '' ? Number.NaN : Number(part)));
  if (parts.length === 2 && Math.abs(lat) <= 90 && Math.abs(lon) <= 180) return { lat, lon };
  throw invalidQuery(where, '"origin" must be a place as "lat,lon", such as "52.52,13.405"');
}

function readSignificantTerms(value: Members, scope: AggregationScope): PlanAggregationKind {
  const { where, budget, filters } = scope;
  const field = requireField(value, where);
  const filter = member(value, 'background_filter');
  const at = `${where}.background_filter`;
  const background: PlanBackground =
    filter === undefined
      ? { field }
      : { field, filter: readQueryNode(filter, { where: at, depth: 0, budget, filters }) };
  return {
    kind: 'significant_terms',
    field,
    ...readSizes(value, 1, where),
    algorithm: readChoice(value, 'algorithm', significanceAlgorithms, where) ?? 'jlh',
    background: backgroundOf(background, scope),
  };
}

function readChoice<Choice extends string>(
  value: Members,
  name: string,
  choices: readonly Choice[],
  where: string,
): Choice | undefined {
  const chosen = readString(value, name, where);
  if (chosen === undefined) return undefined;
  const choice = choices.find((other) => other === chosen);
  if (choice !== undefined) return choice;
  const hint = suggestion(chosen, choices);
  throw invalidQuery(where, `"${name}" must be one of ${choices.join(', ')}.${hint}`);
}
