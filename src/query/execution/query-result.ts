import { forEachYielding } from '../../lib/concurrency/yield-to-event-loop.ts';
import { withMembers } from '../../lib/text/json-text.ts';
import type { ServiceError } from '../../protocol/service-error.ts';
import { type Projection, type ShownParts, shownDocument } from '../request/projection/projection.ts';
import type { Hit } from './hydrate.ts';
import type { CursorPosition } from './page-cursor.ts';
import type { ExecutedQuery } from './query-executor.ts';

export interface ResultContext {
  table: string;
  projection: Projection;
  tookMs: number;
  /** Makes the last member of `_sort`. */
  seal(values: unknown[], at: CursorPosition): string;
  /** For each hit a JSON object of path -> fragments. */
  highlights?: string[] | undefined;
  /** The shown parts of the documents. */
  parts?: ReadonlyMap<Hit, ShownParts> | undefined;
  /** Why words were searched alone. */
  failedOver?: ServiceError | undefined;
  /** JSON object. */
  profile?: string | undefined;
  /** JSON object of what each graph search has found. */
  graphs?: string | undefined;
}

/** Hits that are rendered before the loop yields to other requests. */
const sliceHits = 128;

/** One query's answer as pieces of JSON text, about one a hit. Stored documents are spliced in as they are, unparsed. */
export async function renderQueryResult(executed: ExecutedQuery, context: ResultContext): Promise<string[]> {
  const { hits, total, totalIsExact, isPartial, maxScore, aggregations, damaged } = executed;
  const relation = totalIsExact ? 'exact' : 'gte';
  const pieces = [`{"hits":{"total":{"value":${total},"relation":"${relation}"},"hits":[`];
  const render = (index: number) => {
    const hit = hits[index];
    if (hit === undefined) return;
    const json = renderHit(hit, context.highlights?.[index], context, executed.joined?.get(hit));
    pieces.push(index === 0 ? json : `,${json}`);
  };
  await forEachYielding(hits.length, render, sliceHits);
  const graphs = context.graphs === undefined ? '' : `,"graph_results":${context.graphs}`;
  const profile = context.profile === undefined ? '' : `,"profile":${context.profile}`;
  pieces.push(
    `],"max_score":${renderScore(maxScore)}}${aggregations === undefined ? '' : `,"aggregations":${aggregations}`}${graphs}${profile}${renderFailover(context.failedOver)}${isPartial ? ',"partial":true' : ''}${damaged > 0 ? `,"damaged":${damaged}` : ''},` +
      `"took":${Math.round(context.tookMs)},"status":200,"table":${JSON.stringify(context.table)}}`,
  );
  return pieces;
}

function renderFailover(error: ServiceError | undefined): string {
  return error === undefined ? '' : `,"failover":${JSON.stringify({ code: error.code, error: error.message })}`;
}

function renderHit(
  hit: Hit,
  highlight: string | undefined,
  { projection, seal, parts }: ResultContext,
  joined: string | undefined,
): string {
  const { document, score, sort, place, explanation, distance, legScores } = hit;
  const own = projection.isEmpty ? undefined : renderSource(hit, projection, parts);
  const source = joined ? withMembers(own ?? '{}', joined) : own;
  const sorted =
    sort === undefined || place === undefined ? '' : `,"_sort":${JSON.stringify([...sort, seal(sort, place)])}`;
  const explained = explanation === undefined ? '' : `,"_explanation":${JSON.stringify(explanation)}`;
  const marked = highlight === undefined ? '' : `,"_highlight":${highlight}`;
  const near = Number.isNaN(distance) ? '' : `,"_distance":${renderScore(distance)}`;
  const scores = legScores === undefined ? '' : `,"_index_scores":${renderScores(legScores)}`;
  const ranked = `"_score":${renderScore(score)}${near}${scores}`;
  const head = `{"_id":${JSON.stringify(document.key)},${ranked}${source === undefined ? '' : `,"_source":${source}`}`;
  return `${head}${sorted}${marked}${explained}}`;
}

function renderSource(hit: Hit, projection: Projection, parts: ResultContext['parts']): string {
  return shownDocument(projection, hit.document.text, {
    writtenMs: hit.document.writtenMs,
    ...parts?.get(hit),
  });
}

function renderScores(scores: ReadonlyMap<string, number>): string {
  const members = Array.from(scores, ([leg, score]) => `${JSON.stringify(leg)}:${renderScore(score)}`);
  return `{${members.join(',')}}`;
}

/** Scores are single precision; seven digits say all that they hold. */
function renderScore(score: number): string {
  const size = Math.abs(score);
  if (size >= 1e-6 && size < 1e6) {
    // The same digits as below, in less than half of the time: a page has three scores a hit.
    const scale = 10 ** (6 - Math.floor(Math.log10(size)));
    return String(Math.round(score * scale) / scale);
  }
  return Number.isFinite(score) ? String(Number(score.toPrecision(7))) : '0';
}
