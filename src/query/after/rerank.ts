import type { Caller } from '../../access/principal.ts';
import type { TemplateMedia } from '../../enrichment/media/template-media.ts';
import type { Templates } from '../../enrichment/template/templates.ts';
import type { Provider } from '../../inference/providers/provider.ts';
import { compareKeys } from '../../lib/key-order.ts';
import type { ErrorCode } from '../../protocol/error-codes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ProviderConfig } from '../../provider-config/provider-config.ts';
import type { Hit } from '../execution/hydrate.ts';
import type { ExecutedQuery } from '../execution/query-executor.ts';
import type { AfterSearch } from '../plan/query-plan.ts';
import type { RerankPlan } from '../request/reranker-request.ts';
import { type ComparedDocument, comparedDocuments } from './compared-documents.ts';

/** The provider of a configuration. */
export type FindProvider = (config: ProviderConfig) => Pick<Provider, 'rerank'>;

interface RerankDeps {
  find: FindProvider;
  templates: Templates;
  /** Undefined where media are not taken. */
  media: Pick<TemplateMedia, 'resolve' | 'newBudget'> | undefined;
}

/**
 * Scores the hits of a search once more by a model that reads the query beside each document, orders them by that, and
 * cuts the page. Documents without the text are behind all others, in the order in which the search found them. The total
 * stays that of the search. Throws `reranker_temporarily_unavailable` and `reranker_upstream_failure`: an order that was
 * asked for is never left out without a word.
 */
export async function rerankHits(
  executed: ExecutedQuery,
  { rerank, limit, offset }: AfterSearch,
  { find, templates, media }: RerankDeps,
  call: { caller: Caller; signal: AbortSignal },
): Promise<ExecutedQuery> {
  const documents = await comparedDocuments(executed.hits, rerank, { templates, media, signal: call.signal });
  const withText = executed.hits.filter((_, at) => documents[at] !== undefined);
  const compared = documents.filter((document) => document !== undefined);
  const scores = await scoresOf(rerank, compared, find, call);
  const scored = withText.map((hit, at) => rescored(hit, scores[at] ?? 0, rerank)).sort(byScore);
  const least = Math.min(0, scored.at(-1)?.score ?? 0);
  const others = executed.hits
    .filter((_, at) => documents[at] === undefined)
    .map((hit) => rescored(hit, least, rerank));
  const ordered = [...scored, ...others].slice(0, rerank.topN);
  const hits = ordered.slice(offset, offset + limit);
  return { ...executed, hits, maxScore: ordered[0]?.score ?? 0, reranked: scored.length };
}

async function scoresOf(
  { config, query }: RerankPlan,
  documents: readonly ComparedDocument[],
  find: FindProvider,
  call: { caller: Caller; signal: AbortSignal },
): Promise<Float32Array> {
  if (documents.length === 0) return new Float32Array(0);
  const hasImages = documents.some(({ images }) => images.length > 0);
  try {
    const texts = documents.map(({ text }) => text);
    const seen = hasImages ? { images: documents.map(({ images }) => images) } : {};
    const request = { model: config.model, query, texts, ...seen, truncate: 'end' } as const;
    const { scores } = await find(config).rerank(request, call);
    if (scores.length === texts.length && scores.every(Number.isFinite)) return scores;
    throw new ServiceError('upstream_refused', `${scores.length} scores came for ${texts.length} documents`);
  } catch (error) {
    throw call.signal.aborted ? error : rerankFailure(error, hasImages);
  }
}

/** Faults of the request, which are told as they are. */
const codesOfRequests: readonly ErrorCode[] = ['forbidden', 'not_implemented', 'host_not_allowed'];
/** Faults of images that a template has given. */
const codesOfImages: readonly ErrorCode[] = ['model_not_supported', 'invalid_media', 'media_too_large'];

/** Everything else is a fault of the reranker. */
function rerankFailure(error: unknown, hasImages: boolean): unknown {
  if (!(error instanceof ServiceError) || codesOfRequests.includes(error.code)) return error;
  const message = `reranker: ${error.message}`;
  if (hasImages && codesOfImages.includes(error.code)) return new ServiceError(error.code, message, { cause: error });
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
