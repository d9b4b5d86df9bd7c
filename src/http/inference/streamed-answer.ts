import { limits } from '../../config/limits.ts';
import { clientLeft } from '../../inference/admission.ts';
import type { GenerationOptions, GenerationOutput } from '../../inference/generation/generate.ts';
import type { GenerationRequest } from '../../inference/generation/generation-request.ts';
import type { Inference } from '../../inference/inference.ts';
import { inferenceReason } from '../../protocol/inference/error-body.ts';
import type { FinishReason } from '../../protocol/inference/generate.ts';
import type { ServiceError } from '../../protocol/service-error.ts';
import { SseStream } from '../listener/sse.ts';
import type { RouteContext } from '../routing/route.ts';

type OnPiece = NonNullable<GenerationOptions['onPiece']>;

/** Writes the chunks of one streamed answer as JSON. */
export interface ChunkWriter {
  /** What comes before all else. */
  begin(): string[];
  pieces(...piece: Parameters<OnPiece>): string[];
  /** The last chunk of a choice. */
  finish(choice: number, reason: FinishReason): string;
  /** After all others, where it was asked for. */
  usage(outputs: readonly GenerationOutput[]): string;
}

export interface StreamedParts {
  readonly inference: Pick<Inference, 'clock'>;
  readonly request: Pick<GenerationRequest, 'includeUsage' | 'jsonErrors'>;
  readonly chunks: ChunkWriter;
  readonly generate: (onPiece: OnPiece, signal: AbortSignal) => Promise<readonly GenerationOutput[]>;
}

type Context = Pick<RouteContext<unknown, unknown, unknown>, 'signal' | 'openStream'>;

/** One answer as events. It begins with the first token, so that what fails before that is an ordinary error. */
export class StreamedAnswer {
  readonly #parts: StreamedParts;
  readonly #context: Context;
  readonly #stop = new AbortController();
  readonly #begun = Promise.withResolvers<Response>();
  #stream: SseStream | undefined;
  #open: ReturnType<Context['openStream']> | undefined;

  constructor(parts: StreamedParts, context: Context) {
    this.#parts = parts;
    this.#context = context;
  }

  async begin(): Promise<Response> {
    // A client that waits for long learns that it is being worked for.
    const cancelWait = this.#parts.inference.clock.after(limits.streamHeartbeatMs, () => this.#opened());
    void this.#run();
    try {
      return await this.#begun.promise;
    } finally {
      cancelWait();
    }
  }

  async #run(): Promise<void> {
    const { chunks, generate, request } = this.#parts;
    try {
      const signal = AbortSignal.any([this.#context.signal, this.#stop.signal]);
      const onPiece: OnPiece = (...piece) => {
        for (const chunk of chunks.pieces(...piece)) this.#opened().send(chunk);
      };
      const outputs = await generate(onPiece, signal);
      const stream = this.#opened();
      for (const [choice, { deltas, result, finish }] of outputs.entries()) {
        for (const chunk of chunks.pieces(choice, deltas, result.logprobs)) stream.send(chunk);
        stream.send(chunks.finish(choice, finish));
      }
      if (request.includeUsage) stream.send(chunks.usage(outputs));
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
      clock: this.#parts.inference.clock,
      heartbeatMs: limits.streamHeartbeatMs,
      unsentBytesMax: limits.streamUnsentBytesMax,
      onGone: () => this.#stop.abort(clientLeft()),
    });
    this.#stream = stream;
    this.#open = this.#context.openStream((error) => this.#stop.abort(error));
    for (const chunk of this.#parts.chunks.begin()) stream.send(chunk);
    this.#begun.resolve(stream.response);
    return stream;
  }

  #fail(thrown: unknown): void {
    if (this.#stream === undefined) {
      this.#begun.reject(thrown);
      return;
    }
    const error = this.#open?.failed(thrown) ?? clientLeft();
    this.#stream.fail(this.#parts.request.jsonErrors ? errorJson(error) : `${error.code}: ${error.message}`);
  }
}

/** The shape that the OpenAI SDKs read an error of a stream from. */
function errorJson(error: ServiceError): string {
  const message = `${error.code}: ${error.message}`;
  return JSON.stringify({ error: { message, type: inferenceReason(error), param: null, code: error.code } });
}
