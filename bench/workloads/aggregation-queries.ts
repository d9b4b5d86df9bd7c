/** An aggregation as both sides are asked for it; the documents are those of `zipf-documents.ts`. */
export interface AggregationQuery {
  name: string;
  /** The `aggregations` of our request. */
  aggregations: Record<string, unknown>;
  /** Over a table `documents` with a column for each member. */
  sql: string;
}

const byCategory = { type: 'terms', field: 'category', size: 100 };

export const aggregationQueries: readonly AggregationQuery[] = [
  {
    name: 'terms',
    aggregations: { a: byCategory },
    sql: 'SELECT category, count(*) AS n FROM documents GROUP BY category ORDER BY n DESC, category',
  },
  {
    name: 'stats',
    aggregations: { a: { type: 'stats', field: 'year' } },
    sql: 'SELECT count(year), min(year), max(year), sum(year), sum(year * year), avg(year), stddev_pop(year) FROM documents',
  },
  {
    name: 'histogram',
    aggregations: { a: { type: 'histogram', field: 'year', interval: 10 } },
    sql: 'SELECT floor(year / 10) * 10 AS decade, count(*) FROM documents GROUP BY decade ORDER BY decade',
  },
  {
    name: 'terms-and-stats',
    aggregations: { a: { ...byCategory, sub_aggregations: { years: { type: 'stats', field: 'year' } } } },
    sql:
      'SELECT category, count(*) AS n, min(year), max(year), sum(year), sum(year * year), avg(year), stddev_pop(year) ' +
      'FROM documents GROUP BY category ORDER BY n DESC, category',
  },
];
