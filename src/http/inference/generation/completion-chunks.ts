import type { GenerationOutput } from '../../../inference/generation/generate.ts';
import type { GenerationRequest } from '../../../inference/generation/generation-request.ts';
import type { OutputDelta } from '../../../inference/generation/output-parser.ts';
import type { GenerateEvent } from '../../../model-host/operations/generate.ts';
import type { FinishReason } from '../../../protocol/inference/finish-reasons.ts';
import { type CompletionHead, logprobsBody, speculationOf, usageOfOutputs } from './completion-body.ts';
import type { ChunkWriter } from './streamed-answer.ts';

/** Writes the chunks of one streamed answer as JSON. What is the same in all of them is written once. */
export class CompletionChunks implements ChunkWriter {
  readonly #request: GenerationRequest;
  readonly #newCallId: () => string;
  readonly #start: string;
  readonly #end: string;
  /** Choices that have said or called something. */
  readonly #answered = new Set<number>();
  /** By choice: log probabilities of tokens whose text is still held back. */
  readonly #logprobs = new Map<number, NonNullable<GenerateEvent['logprobs']>>();

  constructor({ id, created, model }: CompletionHead, request: GenerationRequest, newCallId: () => string) {
    this.#request = request;
    this.#newCallId = newCallId;
    const head = JSON.stringify({ id, object: 'chat.completion.chunk', created, model });
    this.#start = `${head.slice(0, -1)},"choices":[`;
    this.#end = request.includeUsage ? '],"usage":null}' : ']}';
  }

  /** The first chunk of each choice. */
  begin(): string[] {
    const choices = Array.from({ length: this.#request.choices }, (_, choice) => choice);
    return choices.map((choice) => this.#chunk(choice, '{"role":"assistant"}', 'null'));
  }

  pieces(choice: number, deltas: readonly OutputDelta[], logprobs: GenerateEvent['logprobs']): string[] {
    if (logprobs !== undefined) this.#logprobs.set(choice, [...(this.#logprobs.get(choice) ?? []), ...logprobs]);
    if (deltas.some(({ kind }) => kind !== 'reasoning')) this.#answered.add(choice);
    return deltas.map((delta) => this.#chunk(choice, this.#delta(delta), 'null'));
  }

  /** The last chunk of a choice. */
  finish(choice: number, reason: FinishReason): string {
    // An answer of no words is one too: clients that saw no content wait for a message.
    return this.#chunk(choice, this.#answered.has(choice) ? '{}' : '{"content":""}', JSON.stringify(reason));
  }

  /** After all others, where it was asked for. */
  usage(outputs: readonly GenerationOutput[]): string {
    const usage = JSON.stringify(usageOfOutputs(outputs));
    const speculation = JSON.stringify(speculationOf(this.#request, outputs));
    return `${this.#start}],"usage":${usage},"speculation":${speculation}}`;
  }

  #chunk(choice: number, delta: string, finish: string): string {
    const held = this.#logprobs.get(choice);
    const logprobs = held === undefined ? 'null' : JSON.stringify(logprobsBody(held));
    if (held !== undefined) this.#logprobs.delete(choice);
    const index = `"index":${choice}`;
    return `${this.#start}{${index},"delta":${delta},"logprobs":${logprobs},"finish_reason":${finish}}${this.#end}`;
  }

  #delta(delta: OutputDelta): string {
    switch (delta.kind) {
      case 'content':
        return `{"content":${JSON.stringify(delta.text)}}`;
      case 'refusal':
        return `{"refusal":${JSON.stringify(delta.text)}}`;
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
