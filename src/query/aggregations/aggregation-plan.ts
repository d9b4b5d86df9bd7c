import type { PlanNode } from '../plan/plan-nodes.ts';

/** The aggregations of the engine over all matches of a plan; they travel to it as JSON under these names. */
export interface AggregationPlan {
  list: PlanAggregation[];
  /**
   * The documents that `significant_terms` compare with, and from which `terms`
   * take values without a match, by their `background`.
   */
  backgrounds: PlanBackground[];
}

export interface PlanAggregation {
  name: string;
  of: PlanAggregationKind;
  /** Computed for every bucket. */
  sub: PlanAggregation[];
}

/** The terms of `field` in the documents that match `filter`, or in all of the table. */
export interface PlanBackground {
  field: string;
  filter?: PlanNode;
}

export const numberMetrics = ['sum', 'avg', 'min', 'max', 'sumsquares', 'stats'] as const;
export type NumberMetric = (typeof numberMetrics)[number];

export const cardinalityModes = ['auto', 'exact', 'approximate'] as const;
export const calendarIntervals = ['minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const;
export const significanceAlgorithms = ['jlh', 'mutual_information', 'chi_squared', 'percentage'] as const;

/** From inclusive, to exclusive. */
export interface PlanRange<Bound> {
  name: string;
  from?: Bound;
  to?: Bound;
}

export type PlanAggregationKind =
  | { kind: 'numbers'; field: string; metric: NumberMetric }
  | { kind: 'count'; field?: string }
  | { kind: 'cardinality'; field: string; mode: (typeof cardinalityModes)[number] }
  | {
      kind: 'terms';
      fields: string[];
      size: number;
      min_doc_count: number;
      /** All values there are; with a `min_doc_count` of 0. */
      background?: number;
    }
  | {
      kind: 'significant_terms';
      field: string;
      size: number;
      min_doc_count: number;
      algorithm: (typeof significanceAlgorithms)[number];
      background: number;
    }
  | { kind: 'range'; field: string; ranges: PlanRange<number>[] }
  | { kind: 'date_range'; field: string; ranges: PlanRange<string>[] }
  | { kind: 'histogram'; field: string; interval: number; min_doc_count: number; size?: number }
  | {
      kind: 'date_histogram';
      field: string;
      calendar_interval: (typeof calendarIntervals)[number];
      min_doc_count: number;
      size?: number;
    }
  | { kind: 'geohash_grid'; field: string; precision: number; size: number }
  | {
      kind: 'geo_distance';
      field: string;
      lat: number;
      lon: number;
      unit_meters: number;
      ranges: PlanRange<number>[];
    };
