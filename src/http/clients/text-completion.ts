import type { GenerationOutput } from '../../inference/generation/generate.ts';
import type { OutputDelta } from '../../inference/generation/output-parser.ts';
import type { GenerateEvent, TokenLogprob } from '../../model-host/operations/generate.ts';
import type { CompletionLogprobs, CompletionsResponse } from '../../protocol/clients/completions.ts';
import type { FinishReason } from '../../protocol/inference/finish-reasons.ts';
import type { Usage } from '../../protocol/inference/generate.ts';
import { type CompletionHead, usageOfOutputs } from '../inference/generation/completion-body.ts';
import type { ChunkWriter } from '../inference/generation/streamed-answer.ts';

/** Members that the choices of an answer share. */
export interface TextCompletion {
  readonly head: CompletionHead;
  /** Choices for each prompt. */
  readonly choices: number;
  readonly wantsLogprobs: boolean;
  readonly includeUsage: boolean;
}

/** The whole answer. */
export function textCompletionBody(of: TextCompletion, outputs: readonly GenerationOutput[]): CompletionsResponse {
  return {
    ...of.head,
    object: 'text_completion',
    choices: outputs.map(({ result, deltas, finish }, index) => {
      return {
        text: textOf(deltas),
        index,
        logprobs: of.wantsLogprobs ? logprobsOf(result.logprobs ?? [], 0) : null,
        finish_reason: finish,
      };
    }),
    usage: usageOfPrompts(of, outputs),
  };
}

/** Chunks of a streamed answer, each with the text of one choice. */
export class TextCompletionChunks implements ChunkWriter {
  readonly #of: TextCompletion;
  /** By choice: characters that its tokens with log probabilities have begun. */
  readonly #begun = new Map<number, number>();

  constructor(of: TextCompletion) {
    this.#of = of;
  }

  begin(): string[] {
    return [];
  }

  pieces(choice: number, deltas: readonly OutputDelta[], logprobs: GenerateEvent['logprobs']): string[] {
    const text = textOf(deltas);
    if (text === '' && logprobs === undefined) return [];
    if (logprobs === undefined) return [this.#chunk(choice, text, null, null)];
    const before = this.#begun.get(choice) ?? 0;
    this.#begun.set(
      choice,
      logprobs.reduce((sum, { bytes }) => sum + charactersBegunBy(bytes), before),
    );
    return [this.#chunk(choice, text, logprobsOf(logprobs, before), null)];
  }

  finish(choice: number, reason: FinishReason): string {
    return this.#chunk(choice, '', null, reason);
  }

  usage(outputs: readonly GenerationOutput[]): string {
    const usage = usageOfPrompts(this.#of, outputs);
    return JSON.stringify({ ...this.#of.head, object: 'text_completion', choices: [], usage });
  }

  #chunk(index: number, text: string, logprobs: CompletionLogprobs | null, finish: FinishReason | null): string {
    const choices = [{ text, index, logprobs, finish_reason: finish }];
    const usage = this.#of.includeUsage ? { usage: null } : {};
    return JSON.stringify({ ...this.#of.head, object: 'text_completion', choices, ...usage });
  }
}

function textOf(deltas: readonly OutputDelta[]): string {
  return deltas.map((delta) => ('text' in delta ? delta.text : '')).join('');
}

function usageOfPrompts({ choices }: TextCompletion, outputs: readonly GenerationOutput[]): Usage {
  const prompts = Array.from({ length: outputs.length / choices }, (_, at) =>
    usageOfOutputs(outputs.slice(at * choices, (at + 1) * choices)),
  );
  const sum = (count: (usage: Usage) => number) => prompts.reduce((total, usage) => total + count(usage), 0);
  const cached = sum((usage) => usage.cached_prompt_tokens);
  return {
    prompt_tokens: sum((usage) => usage.prompt_tokens),
    completion_tokens: sum((usage) => usage.completion_tokens),
    total_tokens: sum((usage) => usage.total_tokens),
    cached_prompt_tokens: cached,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

/** `begun`: characters that the tokens in front of these have begun. A token within a character is where that one is. */
function logprobsOf(logprobs: NonNullable<GenerateEvent['logprobs']>, begun: number): CompletionLogprobs {
  let at = begun;
  const offsets = logprobs.map(({ bytes }) => {
    const start = isWithinCharacter(bytes[0]) ? Math.max(0, at - 1) : at;
    at += charactersBegunBy(bytes);
    return start;
  });
  const byToken = (top: readonly TokenLogprob[]) =>
    Object.fromEntries(top.map(({ token, logprob }) => [token, logprob]));
  const orNull = <T>({ logprob }: TokenLogprob, value: T) => (Number.isNaN(logprob) ? null : value);
  return {
    tokens: logprobs.map(({ token }) => token),
    token_logprobs: logprobs.map((each) => orNull(each, each.logprob)),
    top_logprobs: logprobs.map((each) => orNull(each, byToken(each.top))),
    text_offset: offsets,
  };
}

function charactersBegunBy(bytes: readonly number[]): number {
  return bytes.filter((byte) => !isWithinCharacter(byte)).length;
}

/** Whether the byte goes on with a character of UTF-8. */
function isWithinCharacter(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
