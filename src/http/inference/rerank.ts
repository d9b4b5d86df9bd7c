import { limits } from '../../config/limits.ts';
import type { Inference } from '../../inference/inference.ts';
import type { MediaReference } from '../../inference/media/media-reference.ts';
import { mediaReference } from '../../inference/media/media-reference.ts';
import { type RerankRequest, rerankTexts } from '../../inference/reranking/rerank-texts.ts';
import { type Content, partsOf } from '../../protocol/inference/content-parts.ts';
import {
  rerankMultimodalRequestSchema,
  rerankRequestSchema,
  rerankResponseSchema,
} from '../../protocol/inference/rerank.ts';
import { defineRoute, type Route } from '../route.ts';
import { inferenceBody } from './inference-body.ts';
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
      body: inferenceBody(rerankRequestSchema, { bytesMax }),
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
      description: 'Images are looked at by late-interaction models that have a part for it.',
      body: inferenceBody(rerankMultimodalRequestSchema, { bytesMax: limits.generateBodyBytesMax }),
      responses,
      handler: (context) =>
        underPermit(inference, 'rerank', context, () => {
          const { model, query, documents, truncate } = context.body;
          const parts = documents.map(({ content }, at) => piecesOf(content, `documents[${at}].content`));
          const texts = parts.map(({ text }) => text);
          const images = parts.map((part) => part.images);
          return rerank(inference, { model, query, texts, images, truncate: truncation(truncate) }, context.signal);
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

/** The words of a document, line by line, and its images. */
function piecesOf(content: Content, where: string): { text: string; images: MediaReference[] } {
  if (typeof content === 'string') return { text: content, images: [] };
  const parts = partsOf(content);
  const words = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const images = parts.flatMap((part, at) => mediaReference(part, `${where}[${at}]`) ?? []);
  return { text: words.join('\n'), images };
}
