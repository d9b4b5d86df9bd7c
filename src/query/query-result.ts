import type { Hit } from './hydrate.ts';
import type { Projection } from './projection.ts';
import type { ExecutedQuery } from './query-executor.ts';

export interface ResultContext {
  table: string;
  projection: Projection;
  tookMs: number;
  profile?: unknown;
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** One query's answer as JSON text. Stored documents are spliced in as they are, unparsed. */
export function renderQueryResult(executed: ExecutedQuery, context: ResultContext): string {
  const { hits, total, totalIsExact, maxScore, aggregations } = executed;
  const relation = totalIsExact ? 'exact' : 'gte';
  const rendered = hits.map((hit) => renderHit(hit, context.projection)).join(',');
  const profile = context.profile === undefined ? '' : `,"profile":${JSON.stringify(context.profile)}`;
  return (
    `{"hits":{"total":{"value":${total},"relation":"${relation}"},"hits":[${rendered}],` +
    `"max_score":${renderScore(maxScore)}}${aggregations === undefined ? '' : `,"aggregations":${aggregations}`}${profile},` +
    `"took":${Math.round(context.tookMs)},"status":200,"table":${JSON.stringify(context.table)}}`
  );
}

function renderHit({ document, score, sort }: Hit, projection: Projection): string {
  const stored = decoder.decode(document.body);
  const source = projection.isWhole ? stored : projection.apply(stored);
  const sorted = sort === undefined ? '' : `,"_sort":${JSON.stringify(sort)}`;
  return `{"_id":${JSON.stringify(document.key)},"_score":${renderScore(score)},"_source":${source}${sorted}}`;
}

/** Scores are single precision; seven digits say all that they hold. */
function renderScore(score: number): string {
  return Number.isFinite(score) ? String(Number(score.toPrecision(7))) : '0';
}
