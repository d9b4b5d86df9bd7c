import { limits } from '../../../config/limits.ts';
import type { Finished, InferenceCall } from '../../../inference/admission.ts';
import { type BatchOutcome, generateBatch } from '../../../inference/generation/generate-batch.ts';
import type { GenerationRequest } from '../../../inference/generation/generation-request.ts';
import { loadMedia } from '../../../inference/generation/prompt/load-media.ts';
import type { Inference } from '../../../inference/inference.ts';
import { generateRequestSchema } from '../../../protocol/inference/generate.ts';
import {
  type GenerateBatchBody,
  type GenerateBatchResponse,
  generateBatchRequestSchema,
  generateBatchResponseSchema,
} from '../../../protocol/inference/generate-batch.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { errorBody } from '../../listener/error-response.ts';
import { checkValue } from '../../routing/json-reader.ts';
import { defineRoute, type Route } from '../../routing/route.ts';
import { admitted } from '../admitted.ts';
import { foreignToGeneration } from '../foreign-members.ts';
import { inferenceBody, prepareBody } from '../inference-body.ts';
import { readChatRequest } from './chat-request.ts';
import { completionBody, newCallId, newHead } from './completion-body.ts';

export function generateBatchRoutes(inference: Inference): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/ai/v1/generate/batch',
      access: { inference: 'read' },
      models: ({ requests }) => requests.flatMap(({ body: item }) => namedModels(item)),
      tag: 'Inference',
      summary: 'Generates several answers, those of one model together',
      description: 'Answers 200 also where items fail; each has a response or an error.',
      body: inferenceBody(generateBatchRequestSchema, { bytesMax: limits.generateBodyBytesMax }),
      responses: { 200: { description: 'The answers, in the order asked', schema: generateBatchResponseSchema } },
      handler: (context) =>
        admitted(inference, 'generate', context, () => {
          checkEnvelope(context.body);
          return answer(inference, context.body, context);
        }),
    }),
  ];
}

/** An item is checked later, and is refused alone: what it names by anything but a string is no model. */
function namedModels(item: unknown): string[] {
  const { model, draft_model: draft } = (item ?? {}) as Partial<Record<'model' | 'draft_model', unknown>>;
  return [model, draft].filter((each) => typeof each === 'string');
}

function checkEnvelope({ mode, requests }: GenerateBatchBody): void {
  if (mode === 'async') throw new ServiceError('invalid_request', 'mode: only sync is served; async is reserved');
  const seen = new Set<string>();
  for (const { custom_id } of requests) {
    if (seen.has(custom_id)) {
      throw new ServiceError('invalid_request', `requests: two items have the custom_id "${custom_id}"`);
    }
    seen.add(custom_id);
  }
}

async function answer(
  inference: Inference,
  { requests }: GenerateBatchBody,
  call: InferenceCall,
): Promise<Finished<GenerateBatchResponse>> {
  const read: (GenerationRequest | ServiceError)[] = [];
  for (const { body } of requests) read.push(await readItem(inference, body, call.signal));
  const { outcomes, execution } = await generateBatch(read, inference, call);
  const data = outcomes.map((outcome, index) => ({
    custom_id: requests[index]?.custom_id ?? '',
    index,
    ...itemBody(inference, outcome, read[index]),
  }));
  const outputs = outcomes.flatMap((outcome) => ('output' in outcome ? [outcome.output.result] : []));
  const summary = { total: data.length, succeeded: outputs.length, failed: data.length - outputs.length };
  return {
    value: { object: 'generate.batch', data, summary, execution },
    items: data.length,
    tokens: outputs.reduce((sum, { promptTokens, completionTokens }) => sum + promptTokens + completionTokens, 0),
  };
}

async function readItem(
  inference: Inference,
  body: unknown,
  signal: AbortSignal,
): Promise<GenerationRequest | ServiceError> {
  try {
    prepareBody(body, generateRequestSchema, foreignToGeneration);
    const request = readChatRequest(checkValue(body, generateRequestSchema));
    if (request.stream) throw new ServiceError('invalid_request', 'stream: an item of a batch is not streamed');
    if (request.choices > 1) {
      throw new ServiceError('invalid_request', 'n: an item of a batch has one answer; send it several times');
    }
    await loadMedia(request, inference, signal);
    return request;
  } catch (error) {
    if (error instanceof ServiceError && !signal.aborted) return error;
    throw error;
  }
}

function itemBody(inference: Inference, outcome: BatchOutcome, request: GenerationRequest | ServiceError | undefined) {
  if ('output' in outcome && request !== undefined && !(request instanceof ServiceError)) {
    return { response: completionBody(newHead(inference, request), request, [outcome.output], newCallId) };
  }
  const error = 'error' in outcome ? outcome.error : new ServiceError('inference_failed', 'there is no answer');
  const { code, message, retryable, retry_after_ms = 0 } = errorBody(error);
  return { error: { code, message, retryable, retry_after_ms } };
}
