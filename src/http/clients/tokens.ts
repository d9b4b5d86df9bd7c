import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import type { Inference } from '../../inference/inference.ts';
import { specOfModel } from '../../model-host/model-spec.ts';
import type { TokenizeResult, TokenPiece } from '../../model-host/operations/tokenize.ts';
import type { InstalledModel } from '../../models/installed-model.ts';
import {
  type AnyTokenizeRequest,
  anyTokenizeSchema,
  detokenizedSchema,
  detokenizeSchema,
  tokenizedInputsSchema,
  tokenizedSchema,
} from '../../protocol/clients/tokens.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { admitted } from '../inference/admitted.ts';
import { inferenceBody } from '../inference/inference-body.ts';
import { checkTexts } from '../inference/texts-of-request.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const bytesMax = limits.inferenceBodyBytesMax;

/** Texts to the tokens of a model and back, as clients of vLLM, llama.cpp and Text Embeddings Inference ask. */
export function tokenRoutes(inference: Inference): Route[] {
  const tokenize = (path: '/ai/v1/tokenize' | '/tokenize') =>
    defineRoute({
      method: 'POST',
      path,
      access: { inference: 'read' },
      tag: 'Inference',
      summary: 'Cut a text into the tokens of a model',
      description: 'With `inputs`, an array of tokens for each text, as Text Embeddings Inference has it.',
      body: inferenceBody(anyTokenizeSchema, { bytesMax }),
      models: namedModel,
      responses: { 200: { description: 'The tokens', schema: Type.Union([tokenizedSchema, tokenizedInputsSchema]) } },
      handler: (context) =>
        admitted(inference, 'tokenize', context, async () => {
          const { body, signal } = context;
          const model = modelOf(inference, body.model);
          const texts = textsOf(body);
          checkTexts(texts);
          const input = { texts, special: wantsSpecial(body) };
          const spec = specOfModel(model, inference.settings);
          const result = await inference.pool.run(spec, 'tokenize', input, { signal });
          const count = result.tokens.reduce((sum, each) => sum + each.length, 0);
          const value =
            'inputs' in body ? inputsAnswer(result) : promptAnswer(model, body, result.tokens[0], result.pieces[0]);
          return { value, items: texts.length, tokens: count };
        }),
    });
  const detokenize = (path: '/ai/v1/detokenize' | '/detokenize') =>
    defineRoute({
      method: 'POST',
      path,
      access: { inference: 'read' },
      tag: 'Inference',
      summary: 'The text of tokens of a model',
      body: inferenceBody(detokenizeSchema, { bytesMax }),
      models: namedModel,
      responses: { 200: { description: 'The text, without special tokens', schema: detokenizedSchema } },
      handler: (context) =>
        admitted(inference, 'detokenize', context, async () => {
          const { tokens } = context.body;
          const model = modelOf(inference, context.body.model);
          const spec = specOfModel(model, inference.settings);
          const { text } = await inference.pool.run(spec, 'detokenize', { tokens }, { signal: context.signal });
          return { value: { model: model.name, prompt: text, content: text }, items: 1, tokens: tokens.length };
        }),
    });
  return [
    tokenize('/ai/v1/tokenize'),
    tokenize('/tokenize'),
    detokenize('/ai/v1/detokenize'),
    detokenize('/detokenize'),
  ];
}

function namedModel({ model = '*' }: { readonly model?: string }): string[] {
  return [model];
}

/** A model of any kind: the one that is named, else the only one. */
function modelOf({ registry }: Inference, name: string | undefined): InstalledModel {
  registry.rescan();
  if (name !== undefined) {
    const found = registry.findById(name);
    if (found !== undefined) return found;
    throw new ServiceError('model_not_found', `no model named "${name}" is installed; GET /ai/v1/models lists them`);
  }
  const [only, ...others] = registry.models;
  if (only === undefined) throw new ServiceError('model_not_found', 'no model is installed');
  if (others.length > 0) throw new ServiceError('invalid_request', 'member "model" is missing; several are installed');
  return only;
}

function wantsSpecial(body: AnyTokenizeRequest): boolean {
  return body.add_special_tokens ?? ('add_special' in body ? body.add_special : undefined) ?? true;
}

function textsOf(body: AnyTokenizeRequest): readonly string[] {
  if ('inputs' in body) return typeof body.inputs === 'string' ? [body.inputs] : body.inputs;
  const { prompt, content } = body;
  if (prompt !== undefined && content !== undefined) {
    throw new ServiceError('invalid_request', '"prompt" and "content" are two names for the same; give one of them');
  }
  const text = prompt ?? content;
  if (text === undefined) throw new ServiceError('invalid_request', 'member "prompt" is missing');
  return [text];
}

function promptAnswer(
  { name, manifest }: InstalledModel,
  body: AnyTokenizeRequest,
  tokens: Uint32Array = new Uint32Array(0),
  pieces: readonly TokenPiece[] = [],
): object {
  return {
    model: name,
    count: tokens.length,
    max_model_len: manifest.context_length ?? null,
    tokens: Array.from(tokens),
    token_strs: 'return_token_strs' in body && body.return_token_strs === true ? pieces.map(({ text }) => text) : null,
  };
}

function inputsAnswer({ tokens, pieces }: TokenizeResult): object {
  return pieces.map((each, text) => each.map((piece, at) => ({ id: tokens[text]?.[at], ...piece })));
}
