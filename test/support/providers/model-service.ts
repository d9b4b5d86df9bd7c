import { serverCaller } from '../../../src/access/principal.ts';
import type { ProviderOptions } from '../../../src/config/named-sections/provider-options.ts';
import { MockProvider } from '../../../src/inference/providers/mock-provider.ts';
import type { Provider } from '../../../src/inference/providers/provider.ts';
import { Providers } from '../../../src/inference/providers/providers.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';

export type ServiceProtocol = 'openai' | 'ollama' | 'cohere' | 'bedrock';

export interface SeenRequest {
  readonly path: string;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of four protocols
  readonly body: any;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
}

/** Answers in the place of the usual answer; `undefined` lets that be given. */
type Behaviour = (request: SeenRequest) => Response | Promise<Response> | undefined;

/** A service of models on the loopback, whose vectors count words, so that texts with the same words are near. */
export class ModelService implements AsyncDisposable {
  readonly seen: SeenRequest[] = [];
  /** The answers to the next requests, one each; then `always`. */
  readonly next: Behaviour[] = [];
  always: Behaviour = () => undefined;
  readonly #server: Bun.Server<undefined>;
  readonly #mock = new MockProvider();
  readonly #meanings: Readonly<Record<string, string>>;

  /** `meanings`: words that it takes for others, so that it finds what a question has no words of. */
  constructor(protocol: ServiceProtocol, meanings: Readonly<Record<string, string>> = {}) {
    this.#meanings = meanings;
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: async (request) => {
        const text = await request.text();
        const path = new URL(request.url).pathname;
        const body: unknown = text.startsWith('{') ? JSON.parse(text) : undefined;
        const seen = { path, headers: request.headers, text, body, signal: request.signal };
        this.seen.push(seen);
        return (await (this.next.shift() ?? this.always)(seen)) ?? (await this.#answer(protocol, seen));
      },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  get texts(): string[] {
    return this.seen.flatMap(({ body }) => body?.input ?? body?.texts ?? body?.inputText ?? []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  async vectorsOf(texts: readonly string[], dimensions?: number): Promise<number[][]> {
    const items = texts.map((text) => text.replaceAll(/\p{L}+/gu, (word) => this.#meanings[word] ?? word));
    const { vectors } = await this.#mock.embed({ model: 'm', items, dimensions, keepGoing: true });
    return vectors.map((vector) => [...((vector as Float32Array | undefined) ?? [])]);
  }

  async #answer(protocol: ServiceProtocol, { path, body }: SeenRequest): Promise<Response> {
    const route = `${protocol} ${path.replace(/^\/model\/[^/]+/, '/model/M')}`;
    const { input, texts, inputText, dimensions, output_dimension, messages, documents, query, stream } = body ?? {};
    const given: string[] = input ?? texts ?? (inputText === undefined ? [] : [inputText]);
    const tokens = given.join(' ').split(' ').length;
    const answered = `You said: ${messages?.at(-1)?.content?.[0]?.text ?? messages?.at(-1)?.content}`;
    switch (route) {
      case 'openai /v1/embeddings': {
        const data = (await this.vectorsOf(given, dimensions)).map((embedding, index) => ({ index, embedding }));
        return Response.json({ object: 'list', data: data.toReversed(), usage: { total_tokens: tokens } });
      }
      case 'openai /v1/chat/completions': {
        const usage = { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 };
        if (stream !== true) {
          const choices = [{ index: 0, message: { role: 'assistant', content: answered }, finish_reason: 'stop' }];
          return Response.json({ choices, usage });
        }
        const pieces = [...answered].map((content) => ({ choices: [{ index: 0, delta: { content } }] }));
        const chunks = [
          ...pieces,
          { choices: [{ index: 0, delta: {}, finish_reason: 'length' }] },
          { choices: [], usage },
        ];
        const lines = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'];
        return new Response(lines.map((line) => `data: ${line}\n\n`).join(''));
      }
      case 'openai /v1/audio/transcriptions':
        return Response.json({ text: 'What was said.' });
      case 'ollama /api/embed':
        return Response.json({ embeddings: await this.vectorsOf(given, dimensions), prompt_eval_count: tokens });
      case 'ollama /api/chat': {
        const last = { message: { content: '' }, done: true, done_reason: 'stop', prompt_eval_count: 5, eval_count: 3 };
        if (stream !== true) return Response.json({ ...last, message: { content: answered } });
        const pieces = [...answered].map((content) => ({ message: { content }, done: false }));
        return new Response([...pieces, last].map((piece) => `${JSON.stringify(piece)}\n`).join(''));
      }
      case 'cohere /v2/embed': {
        const float = await this.vectorsOf(given, output_dimension);
        return Response.json({ embeddings: { float }, meta: { billed_units: { input_tokens: tokens } } });
      }
      case 'cohere /v2/rerank': {
        const { scores } = await this.#mock.rerank({ model: 'm', query, texts: documents, truncate: undefined });
        const results = [...scores].map((relevance_score, index) => ({ index, relevance_score }));
        return Response.json({ results: results.sort((a, b) => b.relevance_score - a.relevance_score) });
      }
      case 'bedrock /model/M/invoke': {
        const vectors = await this.vectorsOf(given, dimensions);
        return Response.json(
          inputText === undefined ? { embeddings: vectors } : { embedding: vectors[0], inputTextTokenCount: tokens },
        );
      }
      case 'bedrock /model/M/converse': {
        const usage = { inputTokens: 5, outputTokens: 3 };
        const output = { message: { role: 'assistant', content: [{ text: answered }] } };
        return Response.json({ output, stopReason: 'end_turn', usage });
      }
      default:
        return Response.json({ error: { message: `there is no ${route}` } }, { status: 404 });
    }
  }
}

const unused = () => Promise.reject(new Error('this server is not asked in this test'));

/** Providers that may reach the loopback, with the credentials that a test names. */
export function openProviders({
  own = { embed: unused, rerank: unused, generate: unused },
  clock = systemClock,
  credentials = {},
  entries = {},
  allowed = () => true,
}: {
  readonly own?: Provider;
  readonly clock?: Clock;
  /** Values by the reference as it is written. */
  readonly credentials?: Readonly<Record<string, string>>;
  readonly entries?: Readonly<Record<string, Partial<ProviderOptions>>>;
  readonly allowed?: (url: URL) => boolean;
} = {}): Providers {
  return new Providers({
    own,
    clock,
    hosts: {
      require(url) {
        if (!allowed(url)) throw new ServiceError('host_not_allowed', `"${url.host}" is not allowed`);
      },
    },
    credentials: {
      resolve: (text) => credentials[text] ?? text,
      redact: (text) => Object.values(credentials).reduce((shown, value) => shown.replaceAll(value, '(secret)'), text),
    },
    entries: () => new Map(Object.entries(entries)) as ReadonlyMap<string, ProviderOptions>,
    random: () => 0.5,
  });
}

/** A call in the name of the server itself. */
export function providerCall(signal = new AbortController().signal) {
  return { caller: serverCaller('test', signal), signal };
}
