import type { Caller } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { Templates } from '../../enrichment/template/templates.ts';
import type { Provider } from '../../inference/providers/provider.ts';
import { textAt } from '../../lib/document-path.ts';
import { compareKeys } from '../../lib/key-order.ts';
import { forEachYielding } from '../../lib/yield-to-event-loop.ts';
import type { ErrorCode } from '../../protocol/error-codes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ProviderConfig } from '../../provider-config/provider-config.ts';
import type { Hit } from '../execution/hydrate.ts';
import type { ExecutedQuery } from '../execution/query-executor.ts';
import type { AfterSearch } from '../plan/query-plan.ts';
import { renderedText } from '../request/rendered-text.ts';
import type { RerankPlan } from '../request/reranker-request.ts';

/** The provider of a configuration. */
export type FindProvider = (config: ProviderConfig) => Pick<Provider, 'rerank'>;

interface RerankDeps {
  find: FindProvider;
  templates: Templates;
}

/** Documents that are read before the loop yields to other requests. */
const sliceHits = 4;

/**
 * Scores the hits of a search once more by a model that reads the query beside each document, orders them by that, and
 * cuts the page. Documents without the text are behind all others, in the order in which the search found them. The total
 * stays that of the search. Throws `reranker_temporarily_unavailable` and `reranker_upstream_failure`: an order that was
 * asked for is never left out without a word.
 */
export async function rerankHits(
  executed: ExecutedQuery,
  { rerank, limit, offset }: AfterSearch,
  { find, templates }: RerankDeps,
  call: { caller: Caller; signal: AbortSignal },
): Promise<ExecutedQuery> {
  const texts = await comparedTexts(executed.hits, rerank, templates);
  const withText = executed.hits.filter((_, at) => texts[at] !== undefined);
  const scores = await scoresOf(
    rerank,
    texts.filter((text) => text !== undefined),
    find,
    call,
  );
  const scored = withText.map((hit, at) => rescored(hit, scores[at] ?? 0, rerank)).sort(byScore);
  const least = Math.min(0, scored.at(-1)?.score ?? 0);
  const others = executed.hits.filter((_, at) => texts[at] === undefined).map((hit) => rescored(hit, least, rerank));
  const ordered = [...scored, ...others].slice(0, rerank.topN);
  return { ...executed, hits: ordered.slice(offset, offset + limit), maxScore: ordered[0]?.score ?? 0 };
}

/** What of each document is compared; undefined where there is nothing. */
async function comparedTexts(
  hits: readonly Hit[],
  { source }: RerankPlan,
  templates: Templates,
): Promise<(string | undefined)[]> {
  const texts: (string | undefined)[] = [];
  const read = (at: number) => {
    const document = hits[at]?.document.text ?? '{}';
    const text =
      'field' in source
        ? textAt(document, source.field)
        : renderedText(templates.render(source.template, JSON.parse(document)), 'reranker');
    texts.push(text?.slice(0, limits.rerankTextCharsMax));
  };
  await forEachYielding(hits.length, read, sliceHits);
  return texts;
}

async function scoresOf(
  { config, query }: RerankPlan,
  texts: readonly string[],
  find: FindProvider,
  call: { caller: Caller; signal: AbortSignal },
): Promise<Float32Array> {
  if (texts.length === 0) return new Float32Array(0);
  try {
    const request = { model: config.model, query, texts, truncate: 'end' } as const;
    const { scores } = await find(config).rerank(request, call);
    if (scores.length === texts.length && scores.every(Number.isFinite)) return scores;
    throw new ServiceError('upstream_refused', `${scores.length} scores came for ${texts.length} documents`);
  } catch (error) {
    throw call.signal.aborted ? error : rerankFailure(error);
  }
}

/** Faults of the request, which are told as they are. */
const codesOfRequests: readonly ErrorCode[] = ['forbidden', 'not_implemented', 'host_not_allowed'];

/** Everything else is a fault of the reranker. */
function rerankFailure(error: unknown): unknown {
  if (!(error instanceof ServiceError) || codesOfRequests.includes(error.code)) return error;
  const message = `reranker: ${error.message}`;
  if (!error.retryable) return new ServiceError('reranker_upstream_failure', message, { cause: error });
  const retry = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs };
  return new ServiceError('reranker_temporarily_unavailable', message, { cause: error, ...retry });
}

function rescored(hit: Hit, score: number, { config }: RerankPlan): Hit {
  if (hit.explanation === undefined) return { ...hit, score };
  const description = `score by the reranker "${config.model}"; the search found it as below`;
  return { ...hit, score, explanation: { value: score, description, details: [hit.explanation] } };
}

function byScore(left: Hit, right: Hit): number {
  return right.score - left.score || compareKeys(left.document.key, right.document.key);
}
