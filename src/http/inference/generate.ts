import { limits } from '../../config/limits.ts';
import { clientLeft } from '../../inference/admission.ts';
import type { GenerationRequest } from '../../inference/generation/generation-request.ts';
import type { Inference } from '../../inference/inference.ts';
import { OwnProvider } from '../../inference/providers/own-provider.ts';
import { inferenceReason } from '../../protocol/inference/error-body.ts';
import { generateRequestSchema, generateResponseSchema } from '../../protocol/inference/generate.ts';
import type { ServiceError } from '../../protocol/service-error.ts';
import { SseStream } from '../listener/sse.ts';
import { type BodyValue, defineRoute, type Route, type RouteContext } from '../routing/route.ts';
import { readChatRequest } from './chat-request.ts';
import { completionBody, newCallId, newHead } from './completion-body.ts';
import { CompletionChunks } from './completion-chunks.ts';
import { inferenceBody } from './inference-body.ts';

const tag = 'Inference';
const body = inferenceBody(generateRequestSchema, { bytesMax: limits.generateBodyBytesMax, gzip: true });
type Context = RouteContext<object, unknown, BodyValue<typeof body>>;

/** Chat, whole or as a stream of events, under both of its names. */
export function generateRoutes(inference: Inference): Route[] {
  const own = new OwnProvider(inference);
  return (['/ai/v1/generate', '/ai/v1/chat/completions'] as const).map((path) =>
    defineRoute({
      method: 'POST',
      path,
      access: { inference: 'read' },
      tag,
      summary: 'Generates an answer to a conversation',
      description:
        'With `stream: true` the answer comes as server-sent events, each a chunk of it, the last one `[DONE]`. An error ' +
        'after the first event is an event `error` with plain text, and no `[DONE]` follows.',
      body,
      responses: { 200: { description: 'The answer', schema: generateResponseSchema } },
      handler: (context) => answer(inference, own, context),
    }),
  );
}

async function answer(inference: Inference, own: OwnProvider, context: Context): Promise<object> {
  const request = readChatRequest(context.body);
  if (request.stream) return await new StreamedAnswer(inference, own, request, context).begin();
  const outputs = await own.generate(request, context);
  const [first] = outputs;
  context.addTiming('prefill', first?.result.prefillMs ?? 0);
  context.addTiming('decode', Math.max(...outputs.map(({ result }) => result.decodeMs)));
  return completionBody(newHead(inference, request), request, outputs, newCallId);
}

/** One answer as events. It begins with the first token, so that what fails before that is an ordinary error. */
class StreamedAnswer {
  readonly #inference: Inference;
  readonly #request: GenerationRequest;
  readonly #context: Context;
  readonly #own: OwnProvider;
  readonly #chunks: CompletionChunks;
  readonly #stop = new AbortController();
  readonly #begun = Promise.withResolvers<Response>();
  #stream: SseStream | undefined;
  #open: ReturnType<Context['openStream']> | undefined;

  constructor(inference: Inference, own: OwnProvider, request: GenerationRequest, context: Context) {
    this.#inference = inference;
    this.#request = request;
    this.#context = context;
    this.#own = own;
    this.#chunks = new CompletionChunks(newHead(inference, request), request, newCallId);
  }

  async begin(): Promise<Response> {
    // A client that waits for long learns that it is being worked for.
    const cancelWait = this.#inference.clock.after(limits.streamHeartbeatMs, () => this.#opened());
    void this.#run();
    try {
      return await this.#begun.promise;
    } finally {
      cancelWait();
    }
  }

  async #run(): Promise<void> {
    try {
      const signal = AbortSignal.any([this.#context.signal, this.#stop.signal]);
      const outputs = await this.#own.generate(this.#request, {
        caller: this.#context.caller,
        signal,
        onPiece: (choice, deltas, logprobs) => {
          for (const chunk of this.#chunks.pieces(choice, deltas, logprobs)) this.#opened().send(chunk);
        },
      });
      const stream = this.#opened();
      for (const [choice, { deltas, result, finish }] of outputs.entries()) {
        for (const chunk of this.#chunks.pieces(choice, deltas, result.logprobs)) stream.send(chunk);
        stream.send(this.#chunks.finish(choice, finish));
      }
      if (this.#request.includeUsage) stream.send(this.#chunks.usage(outputs));
      stream.send('[DONE]');
      stream.end();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#open?.end();
    }
  }

  #opened(): SseStream {
    if (this.#stream !== undefined) return this.#stream;
    const stream = new SseStream({
      clock: this.#inference.clock,
      heartbeatMs: limits.streamHeartbeatMs,
      unsentBytesMax: limits.streamUnsentBytesMax,
      onGone: () => this.#stop.abort(clientLeft()),
    });
    this.#stream = stream;
    this.#open = this.#context.openStream((error) => this.#stop.abort(error));
    for (let choice = 0; choice < this.#request.choices; choice += 1) stream.send(this.#chunks.role(choice));
    this.#begun.resolve(stream.response);
    return stream;
  }

  #fail(thrown: unknown): void {
    if (this.#stream === undefined) {
      this.#begun.reject(thrown);
      return;
    }
    const error = this.#open?.failed(thrown) ?? clientLeft();
    this.#stream.fail(this.#request.jsonErrors ? errorJson(error) : `${error.code}: ${error.message}`);
  }
}

/** The shape that the OpenAI SDKs read an error of a stream from. */
function errorJson(error: ServiceError): string {
  const message = `${error.code}: ${error.message}`;
  return JSON.stringify({ error: { message, type: inferenceReason(error), param: null, code: error.code } });
}
