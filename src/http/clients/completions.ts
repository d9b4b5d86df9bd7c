import { limits } from '../../config/limits.ts';
import { type GenerationRequest, generationRequest } from '../../inference/generation/generation-request.ts';
import type { Inference } from '../../inference/inference.ts';
import { OwnProvider } from '../../inference/providers/own-provider.ts';
import {
  type CompletionsBody,
  completionsRequestSchema,
  completionsResponseSchema,
} from '../../protocol/clients/completions.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { foreignToGeneration } from '../inference/foreign-members.ts';
import { isGiven, readFormat, readSharedMembers } from '../inference/generation/chat-request.ts';
import { newHead } from '../inference/generation/completion-body.ts';
import { streamedAnswer } from '../inference/generation/streamed-answer.ts';
import { inferenceBody } from '../inference/inference-body.ts';
import { eventStream } from '../routing/other-content.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { type TextCompletion, TextCompletionChunks, textCompletionBody } from './text-completion.ts';

/** Answers to all prompts of a request. */
const answersMax = 128;

/** The continuation of texts, without a chat template, as OpenAI's clients ask for it. */
export function completionRoutes(inference: Inference): Route[] {
  const own = new OwnProvider(inference);
  return [
    defineRoute({
      method: 'POST',
      path: '/ai/v1/completions',
      access: { inference: 'read' },
      models: ({ model, draft_model: draft }) => (draft === undefined || draft === null ? [model] : [model, draft]),
      tag: 'Inference',
      summary: 'Goes on with a text',
      description: 'With `stream: true` the answer comes as server-sent events, as that of `/ai/v1/chat/completions`.',
      body: inferenceBody(completionsRequestSchema, {
        bytesMax: limits.generateBodyBytesMax,
        foreign: foreignToGeneration,
      }),
      responses: { 200: { description: 'The answer', schema: completionsResponseSchema, also: eventStream } },
      handler: async (context) => {
        const requests = readRequests(context.body);
        const [first] = requests;
        const { choices, includeUsage, stream } = first;
        const completion: TextCompletion = {
          head: newHead(inference, first, 'cmpl'),
          choices,
          wantsLogprobs: first.topLogprobs !== undefined,
          includeUsage,
        };
        if (!stream) return textCompletionBody(completion, await own.generateEach(requests, context));
        const chunks = new TextCompletionChunks(completion);
        const { caller } = context;
        return await streamedAnswer(
          {
            inference,
            request: first,
            chunks,
            generate: (onPiece, signal) => own.generateEach(requests, { caller, signal, onPiece }),
          },
          context,
        );
      },
    }),
  ];
}

/** A request for each prompt. */
function readRequests(body: CompletionsBody): readonly [GenerationRequest, ...GenerationRequest[]] {
  const { prompt, suffix, echo, logprobs, best_of, n } = body;
  if ((best_of ?? 1) > (n ?? 1)) throw invalid('best_of: answers are not ranked; use n');
  const format = readFormat(body);
  const shared = {
    ...readSharedMembers(body, format.kind !== 'text'),
    messages: [],
    format,
    topLogprobs: logprobs ?? undefined,
  };
  const inputs = inputsOf(prompt);
  if (inputs.length * shared.choices > answersMax) throw invalid(`prompt: at most ${answersMax} answers at a time`);
  if (echo === true && isGiven(logprobs) && (suffix ?? '') !== '') {
    throw invalid('echo: has no log probabilities where suffix is given; leave out one of the three');
  }
  const requests = inputs.map((input) => {
    if (input.length === 0) throw invalid('prompt: a text is empty');
    return generationRequest({ ...shared, prompt: { input, suffix: suffix ?? undefined, echo: echo === true } });
  });
  return requests as [GenerationRequest, ...GenerationRequest[]];
}

function inputsOf(prompt: CompletionsBody['prompt']): readonly (string | readonly number[])[] {
  if (typeof prompt === 'string') return [prompt];
  return isTokens(prompt) ? [prompt] : prompt;
}

function isTokens(prompt: Exclude<CompletionsBody['prompt'], string>): prompt is number[] {
  return typeof prompt[0] === 'number';
}

function invalid(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
