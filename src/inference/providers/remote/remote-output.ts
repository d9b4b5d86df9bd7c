import type { GenerateResult } from '../../../model-host/operations/generate.ts';
import type { FinishReason } from '../../../protocol/inference/finish-reasons.ts';
import type { GenerationOutput } from '../../generation/generate.ts';
import type { OutputDelta } from '../../generation/output-parser.ts';

export type TokenCounts = Pick<GenerateResult, 'promptTokens' | 'cachedTokens' | 'completionTokens'>;

/** A count as an answer has it; 0 for what is none, which would spoil the sums that it is added to. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

/** The output of a model that runs elsewhere: of how it was decoded nothing is known but what is given. */
export function remoteOutput(
  deltas: readonly OutputDelta[],
  finish: FinishReason,
  known: TokenCounts & Partial<Pick<GenerateResult, 'logprobs' | 'speculation'>>,
): GenerationOutput {
  const result = {
    finish: finish === 'length' ? ('length' as const) : ('stop' as const),
    stopText: undefined,
    text: '',
    logprobs: undefined,
    speculation: undefined,
    ...known,
    prefillMs: 0,
    decodeMs: 0,
  };
  return { result, deltas, finish };
}

/** The text of an answer, without thoughts and calls. */
export function contentOf({ deltas }: GenerationOutput): string {
  return deltas.map((delta) => (delta.kind === 'content' ? delta.text : '')).join('');
}

/** An output that is text and nothing else, and came to its end. */
export function plainOutput(text: string, tokens: TokenCounts): GenerationOutput {
  return remoteOutput([{ kind: 'content', text }], 'stop', tokens);
}
