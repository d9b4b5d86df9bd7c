import { Type } from '@sinclair/typebox';
import packageFile from '../../../package.json' with { type: 'json' };
import { limits } from '../../config/limits.ts';
import type { Embeddings, EmbedRequest } from '../../inference/embeddings/embed-items.ts';
import type { Inference } from '../../inference/inference.ts';
import { OwnProvider } from '../../inference/providers/own-provider.ts';
import type { InstalledModel } from '../../models/installed-model.ts';
import { anyEmbedSchema, type TeiEmbedRequest, teiInfoSchema } from '../../protocol/clients/tei.ts';
import { embeddingsResponseSchema } from '../../protocol/inference/embeddings.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { timed } from '../inference/admitted.ts';
import { embedder } from '../inference/embeddings.ts';
import { foreignToEmbeddings } from '../inference/foreign-members.ts';
import { inferenceBody } from '../inference/inference-body.ts';
import { checkTexts } from '../inference/texts-of-request.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { soleModel } from './sole-model.ts';

const vectorsSchema = Type.Array(Type.Array(Type.Number()), { description: 'A vector for each of `inputs`.' });

/** Routes for clients of Text Embeddings Inference, beside `/rerank`. */
export function teiRoutes(inference: Inference): Route[] {
  const own = new OwnProvider(inference);
  const embed = embedder(inference);
  return [
    defineRoute({
      method: 'POST',
      path: '/embed',
      access: { inference: 'read' },
      tag: 'Inference',
      summary: 'Embed texts, in the shape of Text Embeddings Inference',
      description: 'With `inputs` the answer is an array of vectors. With `input` it is that of `/ai/v1/embeddings`.',
      body: inferenceBody(anyEmbedSchema, { bytesMax: limits.generateBodyBytesMax, foreign: foreignToEmbeddings }),
      // A request that names none is answered by the only embedder, which is for callers that may use all models.
      models: ({ model = '*' }) => [model],
      responses: {
        200: { description: 'The vectors', schema: Type.Union([vectorsSchema, embeddingsResponseSchema]) },
      },
      handler: (context) => {
        const { body } = context;
        if (!('inputs' in body)) return embed(body, context);
        return timed(inference, context, async () => {
          const model = requireEmbedder(inference, body);
          const vectors = vectorsOf(await own.embed(embedRequest(body, model), context));
          return model.manifest.normalize === false && body.normalize !== false ? vectors.map(unit) : vectors;
        });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/info',
      access: { inference: 'read' },
      tag: 'Inference',
      summary: 'The embedder that is served where a request names none, else the reranker',
      responses: { 200: { description: 'The model and its limits', schema: teiInfoSchema } },
      handler: () => info(inference),
    }),
  ];
}

function requireEmbedder(inference: Inference, { model, normalize }: TeiEmbedRequest): InstalledModel {
  const found = model === undefined ? soleModel(inference, 'embedders') : inference.models.require('embedders', model);
  if (found.manifest.capabilities.includes('sparse')) {
    throw new ServiceError(
      'model_not_supported',
      `the model "${found.name}" makes sparse vectors; ask /ai/v1/embeddings`,
    );
  }
  if (normalize === false && found.manifest.normalize !== false) {
    throw new ServiceError('invalid_request', `normalize: the model "${found.name}" makes vectors of length one only`);
  }
  return found;
}

function embedRequest(body: TeiEmbedRequest, { name, manifest }: InstalledModel): EmbedRequest {
  const { inputs, truncate = false, truncation_direction = 'Right', prompt_name, dimensions } = body;
  const texts = typeof inputs === 'string' ? [inputs] : inputs;
  checkTexts(texts);
  const prefix = prompt_name === undefined ? '' : manifest.prefixes?.[prompt_name];
  if (prefix === undefined) {
    const known = Object.keys(manifest.prefixes ?? {}).join(', ') || 'none';
    throw new ServiceError('invalid_request', `prompt_name: the model "${name}" has the prefixes ${known}`);
  }
  return {
    model: name,
    items: texts.map((text) => prefix + text),
    dimensions,
    truncate: truncate ? (truncation_direction === 'Left' ? 'start' : 'end') : undefined,
  };
}

function vectorsOf({ vectors }: Embeddings): number[][] {
  return vectors.map((vector) => (vector instanceof Float32Array ? Array.from(vector) : []));
}

function unit(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector);
  return length === 0 ? [...vector] : vector.map((value) => value / length);
}

function info(inference: Inference): object {
  const hasEmbedder = inference.registry.models.some(({ kind }) => kind === 'embedders');
  const model = soleModel(inference, hasEmbedder ? 'embedders' : 'rerankers');
  const { context_length, pooling = 'mean' } = model.manifest;
  return {
    model_id: model.name,
    model_type: model.kind === 'embedders' ? { embedding: { pooling } } : { reranker: {} },
    ...(context_length === undefined ? {} : { max_input_length: context_length }),
    max_concurrent_requests: inference.admission.concurrentMax,
    max_client_batch_size: limits.inferenceTextsMax,
    version: packageFile.version,
  };
}
