import type { GenerateBody, GenerateResponse } from '../protocol/inference/generate.ts';
import { eventsOf } from './line-stream.ts';
import type { CallOptions, Requester } from './requester.ts';
import { connectionFailed, errorOfEvent } from './sundew-error.ts';

/** A piece of a streamed answer, in the shape of the OpenAI interface. */
export interface ChatChunk {
  readonly id: string;
  readonly model: string;
  readonly choices: readonly {
    readonly index: number;
    readonly delta: {
      readonly role?: 'assistant';
      readonly content?: string;
      readonly reasoning_content?: string;
      readonly tool_calls?: readonly {
        readonly index: number;
        readonly id?: string;
        readonly function: { readonly name?: string; readonly arguments: string };
      }[];
    };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: GenerateResponse['usage'] | null;
}

type ChatRequest = Omit<GenerateBody, 'stream'>;

interface EmbedRequest {
  readonly model: string;
  readonly input: string | readonly string[];
  readonly dimensions?: number;
  readonly task_type?: string;
}

interface RerankRequest {
  readonly model: string;
  readonly query: string;
  readonly prompts: readonly string[];
}

/** The models of the server. */
export class InferenceClient {
  readonly #requester: Requester;

  constructor(requester: Requester) {
    this.#requester = requester;
  }

  /** One answer, whole. */
  chat(request: ChatRequest, options: CallOptions = {}): Promise<GenerateResponse> {
    return this.#post('chat/completions', request, options);
  }

  /** The same as it is generated. Ending the iteration, or aborting, frees the model within a token. */
  async *chatStream(request: ChatRequest, options: CallOptions = {}): AsyncGenerator<ChatChunk> {
    const stream_options = { include_usage: true, ...request.stream_options, error_format: 'json' };
    const response = await this.#requester.send({
      ...options,
      method: 'POST',
      path: '/ai/v1/chat/completions',
      body: { ...request, stream: true, stream_options },
      repeat: 'always',
    });
    for await (const { event, data } of eventsOf(response, options.signal)) {
      if (event === 'error') {
        options.signal?.throwIfAborted();
        throw errorOfEvent(data);
      }
      if (data === '[DONE]') return;
      yield JSON.parse(data) as ChatChunk;
    }
    options.signal?.throwIfAborted();
    throw connectionFailed('the stream ended before the answer did');
  }

  /** A vector for each text. */
  async embed({ input, ...request }: EmbedRequest, options: CallOptions = {}): Promise<number[][]> {
    const body = { ...request, input };
    const { data } = await this.#post<{ data: { embedding: number[] }[] }>('embeddings', body, options);
    return data.map(({ embedding }) => embedding);
  }

  /** A score for each text, higher is better. */
  async rerank(request: RerankRequest, options: CallOptions = {}): Promise<number[]> {
    const { data } = await this.#post<{ data: { score: number }[] }>('rerank', request, options);
    return data.map(({ score }) => score);
  }

  #post<T>(route: string, body: unknown, options: CallOptions): Promise<T> {
    return this.#requester.json({ ...options, method: 'POST', path: `/ai/v1/${route}`, body, repeat: 'always' });
  }
}
