import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import type { Inference } from '../../inference/inference.ts';
import { OwnProvider } from '../../inference/providers/own-provider.ts';
import type { Provider } from '../../inference/providers/provider.ts';
import type { Reranked, RerankRequest } from '../../inference/reranking/rerank-texts.ts';
import {
  type AnyRerankRequest,
  anyRerankSchema,
  type DocumentsRerankRequest,
  rankedTextsSchema,
  rerankResultsSchema,
  type TextsRerankRequest,
} from '../../protocol/clients/rerank.ts';
import { type RerankRequest as PromptsRequest, rerankResponseSchema } from '../../protocol/inference/rerank.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { timed } from '../inference/admitted.ts';
import { foreignToReranking } from '../inference/foreign-members.ts';
import { inferenceBody } from '../inference/inference-body.ts';
import { scoreList } from '../inference/rerank.ts';
import { checkTexts, truncation } from '../inference/texts-of-request.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { soleModel } from './sole-model.ts';

/** The request to the model, and the form of the answer. */
interface RerankForm {
  readonly request: RerankRequest;
  readonly answer: (reranked: Reranked) => object;
}

/** Reranking of texts in every form that clients ask for: `prompts`, `documents` (Cohere, Jina), `texts` (TEI). */
export function textRerankRoutes(inference: Inference, provider: Provider = new OwnProvider(inference)): Route[] {
  const at = (path: '/ai/v1/rerank' | '/rerank' | '/v2/rerank') =>
    defineRoute({
      method: 'POST',
      path,
      access: { inference: 'read' },
      tag: 'Inference',
      models: namedModel,
      summary: 'Score how well texts answer a query',
      description:
        'With `prompts`, a score for each in their order. With `documents`, as Cohere and Jina have it, results in the order of relevance. With `texts`, as Text Embeddings Inference has it, a list in that order.',
      body: inferenceBody(anyRerankSchema, { bytesMax: limits.inferenceBodyBytesMax, foreign: foreignToReranking }),
      responses: {
        200: {
          description: 'The scores',
          schema: Type.Union([rerankResponseSchema, rerankResultsSchema, rankedTextsSchema]),
        },
      },
      handler: (context) =>
        timed(inference, context, async () => {
          const { request, answer } = formOf(inference, context.body);
          checkTexts([request.query, ...request.texts]);
          return answer(await provider.rerank(request, context));
        }),
    });
  return [at('/ai/v1/rerank'), at('/rerank'), at('/v2/rerank')];
}

/** A request that names none is answered by the only reranker, which is for callers that may use all models. */
function namedModel({ model = '*' }: AnyRerankRequest): string[] {
  return [model];
}

const membersOfForms = {
  documents: ['top_n', 'return_documents', 'max_tokens_per_doc'],
  texts: ['raw_scores', 'return_text', 'truncation_direction'],
};

/** Members of the other forms beside `prompts`, and of two forms at once, would go unheard. */
function formOf(inference: Inference, body: AnyRerankRequest): RerankForm {
  const given = ['prompts', 'documents', 'texts'].filter((name) => name in body);
  if (given.length > 1) {
    throw new ServiceError('invalid_request', `"${given.join('" and "')}" are forms of one request; give one of them`);
  }
  for (const [form, names] of Object.entries(membersOfForms)) {
    const other = names.find((name) => name in body && !(form in body));
    if (other !== undefined) throw new ServiceError('invalid_request', `"${other}" is for "${form}"`);
  }
  if ('prompts' in body) return byPrompts(body);
  return 'documents' in body ? byDocuments(inference, body) : byTexts(inference, body);
}

function byPrompts({ model, query, prompts, truncate }: PromptsRequest): RerankForm {
  return { request: { model, query, texts: prompts, truncate: truncation(truncate) }, answer: scoreList };
}

function byDocuments(inference: Inference, body: DocumentsRerankRequest): RerankForm {
  const { query, documents, top_n, return_documents = false, max_tokens_per_doc } = body;
  const model = body.model ?? soleModel(inference, 'rerankers').name;
  const texts = documents.map((each) => (typeof each === 'string' ? each : each.text));
  return {
    // The services that these clients are made for cut texts that are too long.
    request: { model, query, texts, truncate: 'end', textTokensMax: max_tokens_per_doc },
    answer: ({ model: used, scores, tokens }) => ({
      id: crypto.randomUUID(),
      object: 'list',
      model: used,
      results: byRelevance(scores)
        .slice(0, top_n)
        .map(({ index, score }) => ({
          index,
          relevance_score: score,
          ...(return_documents ? { document: { text: texts[index] } } : {}),
        })),
      usage: { prompt_tokens: tokens, total_tokens: tokens },
      meta: { api_version: { version: '2' }, tokens: { input_tokens: tokens } },
    }),
  };
}

function byTexts(inference: Inference, body: TextsRerankRequest): RerankForm {
  const { query, texts, return_text = false, truncate = false, truncation_direction = 'Right' } = body;
  if (body.raw_scores === true) {
    throw new ServiceError('invalid_request', 'raw_scores: scores are answered as the model means them; leave it out');
  }
  const model = body.model ?? soleModel(inference, 'rerankers').name;
  const side = truncation_direction === 'Left' ? 'start' : 'end';
  return {
    request: { model, query, texts, truncate: truncate ? side : undefined },
    answer: ({ scores }) =>
      byRelevance(scores).map(({ index, score }) => ({
        index,
        score,
        ...(return_text ? { text: texts[index] } : {}),
      })),
  };
}

/** The best first; equal ones in the order of the request. */
function byRelevance(scores: Float32Array): { index: number; score: number }[] {
  return Array.from(scores, (score, index) => ({ index, score })).sort(
    (a, b) => b.score - a.score || a.index - b.index,
  );
}
