import { limits } from '../../config/limits.ts';
import { isFixedChunker } from '../../index-kinds/configuration/chunker-config.ts';
import { type Chunked, type ChunkRequest, chunkText } from '../../inference/chunking/chunk-text.ts';
import type { Inference } from '../../inference/inference.ts';
import { CodePointOffsets } from '../../lib/text/code-points.ts';
import { fixedChunker } from '../../models/model-registry.ts';
import { type ChunkBody, chunkRequestSchema, chunkResponseSchema } from '../../protocol/inference/chunk.ts';
import { usageOf } from '../../protocol/inference/usage.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { admitted } from './admitted.ts';
import { inferenceBody } from './inference-body.ts';

const defaults = { targetTokens: 500, overlapTokens: 0, separator: '\n\n', threshold: 0.5 };

export function chunkRoutes(inference: Inference): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/ai/v1/chunk',
      access: { inference: 'read' },
      tag: 'Inference',
      summary: 'Split a text into chunks',
      description:
        'Chunks may overlap. `fixed`, also called `fixed_bert` and `fixed_bpe`, counts runs of up to eight letters or digits, and every other character, as a token. Answers are kept for two minutes.',
      body: inferenceBody(chunkRequestSchema, { bytesMax: limits.inferenceBodyBytesMax }),
      models: ({ config }) => [modelOf(config)],
      responses: { 200: { description: 'The chunks, in the order of the text', schema: chunkResponseSchema } },
      handler: (context) =>
        admitted(inference, 'chunk', context, async () => {
          const request = chunkRequest(context.body);
          const chunked = await chunkText(inference, request, context);
          return { value: chunkAnswer(request.text, chunked), items: chunked.chunks.length, tokens: chunked.tokens };
        }),
    }),
  ];
}

function chunkRequest({ text, input, config = {} }: ChunkBody): ChunkRequest {
  refuseTwice(config);
  const target = config.text?.target_tokens ?? config.target_tokens ?? defaults.targetTokens;
  const most = limits.chunkTokensMax;
  if (target > most) {
    throw new ServiceError('limit_exceeded', `"target_tokens" is ${target}; a chunk may have ${most} tokens`);
  }
  return {
    model: modelOf(config),
    text: textOf(text, input),
    targetTokens: target,
    overlapTokens: config.text?.overlap_tokens ?? config.overlap_tokens ?? defaults.overlapTokens,
    separator: config.text?.separator ?? config.separator ?? defaults.separator,
    chunksMax: config.max_chunks,
    threshold: config.threshold ?? defaults.threshold,
  };
}

/** A length that is said in both places has to be the same. */
function refuseTwice({ text = {}, ...config }: NonNullable<ChunkBody['config']>): void {
  for (const name of ['target_tokens', 'overlap_tokens', 'separator'] as const) {
    const [one, other] = [config[name], text[name]];
    if (one === undefined || other === undefined || one === other) continue;
    throw new ServiceError('invalid_request', `"config.${name}" and "config.text.${name}" differ; give one of them`);
  }
}

/** `fixed` by each of its names. */
function modelOf({ model = fixedChunker }: Pick<NonNullable<ChunkBody['config']>, 'model'> = {}): string {
  return isFixedChunker(model) ? fixedChunker : model;
}

function textOf(text: ChunkBody['text'], input: ChunkBody['input']): string {
  if (text !== undefined && input !== undefined) {
    throw new ServiceError('invalid_request', '"text" and "input" are two names for the same; give one of them');
  }
  const given = text ?? (typeof input === 'object' && input.type === 'text' ? input.text : input);
  if (given === undefined) throw new ServiceError('invalid_request', 'member "text" is missing');
  if (typeof given !== 'string') {
    throw new ServiceError('model_not_supported', `texts are chunked; a part of type "${given.type}" is not`);
  }
  const most = limits.chunkTextCharsMax;
  if (given.length <= most) return given;
  throw new ServiceError('limit_exceeded', `the text has ${given.length} characters; it may have ${most}`);
}

function chunkAnswer(text: string, { model, chunks, tokens, cacheHit }: Chunked): object {
  const starts = new CodePointOffsets(text);
  const ends = new CodePointOffsets(text);
  const data = chunks.map(({ start, end }, index) => ({
    object: 'chunk',
    index,
    id: index,
    text: text.slice(start, end),
    start_char: starts.at(start),
    end_char: ends.at(end),
    mime_type: 'text/plain',
  }));
  return { object: 'list', data, model, usage: usageOf(tokens), cache_hit: cacheHit };
}
