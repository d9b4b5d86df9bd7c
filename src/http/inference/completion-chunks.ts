import type { GenerationOutput } from '../../inference/generation/generate.ts';
import type { GenerationRequest } from '../../inference/generation/generation-request.ts';
import type { OutputDelta } from '../../inference/generation/output-parser.ts';
import type { GenerateEvent } from '../../model-host/operations/generate.ts';
import type { FinishReason } from '../../protocol/inference/generate.ts';
import { type CompletionHead, logprobsBody, speculationOf, usageOfResult } from './completion-body.ts';

/** Writes the chunks of one streamed answer as JSON. What is the same in all of them is written once. */
export class CompletionChunks {
  readonly #request: GenerationRequest;
  readonly #newCallId: () => string;
  readonly #start: string;
  readonly #end: string;
  /** Log probabilities of tokens whose text is still held back. */
  #logprobs: NonNullable<GenerateEvent['logprobs']>[number][] = [];

  constructor({ id, created, model }: CompletionHead, request: GenerationRequest, newCallId: () => string) {
    this.#request = request;
    this.#newCallId = newCallId;
    const head = JSON.stringify({ id, object: 'chat.completion.chunk', created, model });
    this.#start = `${head.slice(0, -1)},"choices":[`;
    this.#end = request.includeUsage ? '],"usage":null}' : ']}';
  }

  /** The first chunk. */
  role(): string {
    return this.#chunk('{"role":"assistant"}', 'null');
  }

  pieces(deltas: readonly OutputDelta[], logprobs: GenerateEvent['logprobs']): string[] {
    if (logprobs !== undefined) this.#logprobs.push(...logprobs);
    return deltas.map((delta) => this.#chunk(this.#delta(delta), 'null'));
  }

  /** The last chunk of the answer itself. */
  finish(reason: FinishReason): string {
    return this.#chunk('{}', JSON.stringify(reason));
  }

  /** After all others, where it was asked for. */
  usage({ result }: GenerationOutput): string {
    const usage = JSON.stringify(usageOfResult(result));
    const speculation = JSON.stringify(speculationOf(this.#request, result));
    return `${this.#start}],"usage":${usage},"speculation":${speculation}}`;
  }

  #chunk(delta: string, finish: string): string {
    const logprobs = this.#logprobs.length === 0 ? 'null' : JSON.stringify(logprobsBody(this.#logprobs));
    if (this.#logprobs.length > 0) this.#logprobs = [];
    return `${this.#start}{"index":0,"delta":${delta},"logprobs":${logprobs},"finish_reason":${finish}}${this.#end}`;
  }

  #delta(delta: OutputDelta): string {
    switch (delta.kind) {
      case 'content':
        return `{"content":${JSON.stringify(delta.text)}}`;
      case 'reasoning':
        return `{"reasoning_content":${JSON.stringify(delta.text)}}`;
      case 'call': {
        const { index, name } = delta;
        const call = { index, id: this.#newCallId(), type: 'function', function: { name, arguments: '' } };
        return `{"tool_calls":[${JSON.stringify(call)}]}`;
      }
      case 'arguments':
        return `{"tool_calls":[{"index":${delta.index},"function":{"arguments":${JSON.stringify(delta.text)}}}]}`;
    }
  }
}
