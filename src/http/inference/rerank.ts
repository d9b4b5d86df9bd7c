import { limits } from '../../config/limits.ts';
import type { Inference } from '../../inference/inference.ts';
import type { MediaReference } from '../../inference/media/media-reference.ts';
import { mediaReference } from '../../inference/media/media-reference.ts';
import { OwnProvider } from '../../inference/providers/own-provider.ts';
import type { Reranked, RerankRequest } from '../../inference/reranking/rerank-texts.ts';
import { type Content, partsOf } from '../../protocol/inference/content-parts.ts';
import { rerankMultimodalRequestSchema, rerankResponseSchema } from '../../protocol/inference/rerank.ts';
import { usageOf } from '../../protocol/inference/usage.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { timed } from './admitted.ts';
import { inferenceBody } from './inference-body.ts';
import { checkTexts, truncation } from './texts-of-request.ts';

const responses = { 200: { description: 'A score for every text', schema: rerankResponseSchema } };

/** Reranking of documents that are more than texts. */
export function rerankRoutes(inference: Inference): Route[] {
  const own = new OwnProvider(inference);
  return [
    defineRoute({
      method: 'POST',
      path: '/ai/v1/rerank_multimodal',
      access: { inference: 'read' },
      models: ({ model }) => [model],
      tag: 'Inference',
      summary: 'Score how well documents of content parts answer a query',
      description: 'Images are looked at by late-interaction models that have a part for it.',
      body: inferenceBody(rerankMultimodalRequestSchema, { bytesMax: limits.generateBodyBytesMax }),
      responses,
      handler: (context) =>
        timed(inference, context, async () => {
          const { model, query, documents, truncate } = context.body;
          const parts = documents.map(({ content }, at) => piecesOf(content, `documents[${at}].content`));
          const texts = parts.map(({ text }) => text);
          const images = parts.map((part) => part.images);
          const request = checked({ model, query, texts, images, truncate: truncation(truncate) });
          return scoreList(await own.rerank(request, context));
        }),
    }),
  ];
}

function checked(request: RerankRequest): RerankRequest {
  checkTexts([request.query, ...request.texts]);
  return request;
}

/** A score for each text, in their order. */
export function scoreList({ model, scores, tokens }: Reranked): object {
  const data = Array.from(scores, (score, index) => ({ object: 'rerank.score', index, score }));
  return { object: 'list', data, model, usage: usageOf(tokens) };
}

/** The words of a document, line by line, and its images. */
function piecesOf(content: Content, where: string): { text: string; images: MediaReference[] } {
  const parts = partsOf(content);
  const words = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const images = parts.flatMap((part, at) => mediaReference(part, `${where}[${at}]`) ?? []);
  return { text: words.join('\n'), images };
}
