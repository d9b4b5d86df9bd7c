import { limits } from '../../config/limits.ts';
import type { Inference } from '../../inference/inference.ts';
import { type RerankRequest, rerankTexts } from '../../inference/reranking/rerank-texts.ts';
import type { Content } from '../../protocol/inference/content-parts.ts';
import {
  rerankMultimodalRequestSchema,
  rerankRequestSchema,
  rerankResponseSchema,
} from '../../protocol/inference/rerank.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { defineRoute, type Route } from '../route.ts';
import { checkTexts, truncation, underPermit, type Worked } from './inference-work.ts';

const responses = { 200: { description: 'A score for every text', schema: rerankResponseSchema } };
const bytesMax = limits.inferenceBodyBytesMax;

export function rerankRoutes(inference: Inference): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/ai/v1/rerank',
      tag: 'Inference',
      summary: 'Score how well texts answer a query',
      body: { kind: 'json', schema: rerankRequestSchema, bytesMax },
      responses,
      handler: (context) =>
        underPermit(inference, 'rerank', context, () => {
          const { model, query, prompts, truncate } = context.body;
          return rerank(inference, { model, query, texts: prompts, truncate: truncation(truncate) }, context.signal);
        }),
    }),
    defineRoute({
      method: 'POST',
      path: '/ai/v1/rerank_multimodal',
      tag: 'Inference',
      summary: 'Score how well documents of content parts answer a query',
      body: { kind: 'json', schema: rerankMultimodalRequestSchema, bytesMax },
      responses,
      handler: (context) =>
        underPermit(inference, 'rerank', context, () => {
          const { model, query, documents, truncate } = context.body;
          const texts = documents.map(({ content }) => textOf(content));
          return rerank(inference, { model, query, texts, truncate: truncation(truncate) }, context.signal);
        }),
    }),
  ];
}

async function rerank(inference: Inference, request: RerankRequest, signal: AbortSignal): Promise<Worked> {
  checkTexts([request.query, ...request.texts]);
  const { model, scores, tokens } = await rerankTexts(inference, request, signal);
  const data = Array.from(scores, (score, index) => ({ object: 'rerank.score', index, score }));
  const usage = { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens, cached_prompt_tokens: 0 };
  return { answer: { object: 'list', data, model, usage }, items: scores.length, tokens };
}

function textOf(content: Content): string {
  if (typeof content === 'string') return content;
  const pieces = content.map((part) => {
    if (part.type === 'text') return part.text;
    throw new ServiceError(
      'model_not_supported',
      `this model reads text only; it cannot score a part of type "${part.type}"`,
    );
  });
  return pieces.join('\n');
}
