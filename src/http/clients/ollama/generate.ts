import { limits } from '../../../config/limits.ts';
import type { GenerationRequest } from '../../../inference/generation/generation-request.ts';
import type { Inference } from '../../../inference/inference.ts';
import { OwnProvider } from '../../../inference/providers/own-provider.ts';
import { must } from '../../../lib/assert.ts';
import { specOfModel } from '../../../model-host/model-spec.ts';
import {
  type OllamaChat,
  type OllamaGenerate,
  ollamaAnswerSchema,
  ollamaChatSchema,
  ollamaGenerateSchema,
} from '../../../protocol/clients/ollama.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { admitted } from '../../inference/admitted.ts';
import { inferenceBody } from '../../inference/inference-body.ts';
import { LateStream } from '../../listener/streams/late-stream.ts';
import { lineStream } from '../../routing/other-content.ts';
import { defineRoute, type Route, type RouteContext } from '../../routing/route.ts';
import { readOllamaChat, readOllamaPrompt } from './chat-request.ts';
import { GenerationLines, type GenerationShape } from './generation-lines.ts';
import { plainName } from './model-names.ts';

type Context = RouteContext<object, object, OllamaChat | OllamaGenerate>;

/** `/api/chat` and `/api/generate`. */
export function ollamaGenerationRoutes(inference: Inference): Route[] {
  const own = new OwnProvider(inference);
  const shared = {
    method: 'POST',
    access: { inference: 'read' },
    tag: 'Ollama',
    responses: { 200: { description: 'The answer, whole or in lines', schema: ollamaAnswerSchema, also: lineStream } },
  } as const;
  return [
    defineRoute({
      ...shared,
      path: '/api/chat',
      summary: 'Generates an answer to a conversation',
      body: inferenceBody(ollamaChatSchema, { bytesMax: limits.generateBodyBytesMax }),
      models: ({ model }) => [plainName(model)],
      handler: (context) => {
        const isEmpty = (context.body.messages ?? []).length === 0;
        const form = { shape: 'chat', isEmpty, read: () => readOllamaChat(context.body) } as const;
        return answer(inference, own, form, context);
      },
    }),
    defineRoute({
      ...shared,
      path: '/api/generate',
      summary: 'Generates an answer to one prompt',
      body: inferenceBody(ollamaGenerateSchema, { bytesMax: limits.generateBodyBytesMax }),
      models: ({ model }) => [plainName(model)],
      handler: (context) => {
        const isEmpty = (context.body.prompt ?? '') === '' && (context.body.images ?? []).length === 0;
        const form = { shape: 'generate', isEmpty, read: () => readOllamaPrompt(context.body) } as const;
        return answer(inference, own, form, context);
      },
    }),
  ];
}

interface GenerationForm {
  readonly shape: GenerationShape;
  /** Nothing to answer: the model is only loaded, or unloaded. */
  readonly isEmpty: boolean;
  readonly read: () => GenerationRequest;
}

async function answer(inference: Inference, own: OwnProvider, form: GenerationForm, context: Context): Promise<object> {
  const lines = new GenerationLines(form.shape, context.body.model, inference.clock);
  const request = form.read();
  if (form.isEmpty) return await load(inference, request, lines, context);
  if (request.enableThinking === true) checkThinks(inference, request.model);
  if (!request.stream) {
    const [output] = await own.generate(request, context);
    return lines.whole(must(output, 'there is an answer'));
  }
  const stream = new LateStream(context, {
    clock: inference.clock,
    framing: 'lines',
    failure: ({ code, message }) => JSON.stringify({ error: `${code}: ${message}` }),
  });
  return await stream.run(async () => {
    const send = (line: object) => stream.send(JSON.stringify(line));
    const [output] = await own.generate(request, {
      caller: context.caller,
      signal: stream.signal,
      onPiece: (_choice, deltas, logprobs) => lines.pieces(deltas, logprobs).forEach(send),
    });
    lines.end(must(output, 'there is an answer')).forEach(send);
  });
}

/** Clients of Ollama learn from this refusal that a model has no thoughts to show. */
function checkThinks(inference: Inference, name: string): void {
  if (inference.models.require('generators', name).manifest.capabilities.includes('reasoning')) return;
  throw new ServiceError('model_not_supported', `think: "${name}" does not support thinking`);
}

/** Loads the model, to stay for the time that is asked for; a time of 0 unloads it. */
function load(
  inference: Inference,
  { model: name, keepAliveMs }: GenerationRequest,
  lines: GenerationLines,
  context: Context,
): Promise<object> {
  return admitted(inference, 'load', context, async () => {
    const model = inference.models.require('generators', name);
    const staying = { signal: context.signal, ...(keepAliveMs === undefined ? {} : { keepAliveMs }) };
    if (keepAliveMs === 0) inference.pool.unload(model);
    else await inference.pool.use(specOfModel(model, inference.settings), () => Promise.resolve(), staying);
    return { value: lines.nothing(keepAliveMs === 0 ? 'unload' : 'load'), items: 0, tokens: 0 };
  });
}
