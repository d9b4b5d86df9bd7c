import { limits } from '../../../config/limits.ts';
import type { Inference } from '../../../inference/inference.ts';
import { OwnProvider } from '../../../inference/providers/own-provider.ts';
import type { Provider } from '../../../inference/providers/provider.ts';
import { generateRequestSchema, generateResponseSchema } from '../../../protocol/inference/generate.ts';
import { eventStream } from '../../routing/other-content.ts';
import { type BodyValue, defineRoute, type Route, type RouteContext } from '../../routing/route.ts';
import { foreignToGeneration } from '../foreign-members.ts';
import { inferenceBody } from '../inference-body.ts';
import { readChatRequest } from './chat-request.ts';
import { completionBody, newCallId, newHead } from './completion-body.ts';
import { CompletionChunks } from './completion-chunks.ts';
import { streamedAnswer } from './streamed-answer.ts';

const tag = 'Inference';
const body = inferenceBody(generateRequestSchema, {
  bytesMax: limits.generateBodyBytesMax,
  foreign: foreignToGeneration,
});
type Context = RouteContext<object, unknown, BodyValue<typeof body>>;

/** Chat, whole or as a stream of events, under both of its names. */
export function generateRoutes(inference: Inference, provider: Provider = new OwnProvider(inference)): Route[] {
  return (['/ai/v1/generate', '/ai/v1/chat/completions'] as const).map((path) =>
    defineRoute({
      method: 'POST',
      path,
      access: { inference: 'read' },
      models: namedModels,
      tag,
      summary: 'Generates an answer to a conversation',
      description:
        'With `stream: true` the answer comes as server-sent events, each a chunk of it, the last one `[DONE]`. An error ' +
        'after the first event is an event `error` with plain text, and no `[DONE]` follows.',
      body,
      responses: { 200: { description: 'The answer', schema: generateResponseSchema, also: eventStream } },
      handler: (context) => answer(inference, provider, context),
    }),
  );
}

/** The generator, and the one that drafts for it. */
function namedModels({ model, draft_model: draft }: BodyValue<typeof body>): string[] {
  return draft === undefined || draft === null ? [model] : [model, draft];
}

async function answer(inference: Inference, provider: Provider, context: Context): Promise<object> {
  const request = readChatRequest(context.body);
  if (request.stream) {
    const chunks = new CompletionChunks(newHead(inference, request), request, newCallId);
    const { caller } = context;
    return await streamedAnswer(
      {
        inference,
        request,
        chunks,
        generate: (onPiece, signal) => provider.generate(request, { caller, signal, onPiece }),
      },
      context,
    );
  }
  const outputs = await provider.generate(request, context);
  const [first] = outputs;
  context.addTiming('prefill', first?.result.prefillMs ?? 0);
  context.addTiming('decode', Math.max(...outputs.map(({ result }) => result.decodeMs)));
  return completionBody(newHead(inference, request), request, outputs, newCallId);
}
