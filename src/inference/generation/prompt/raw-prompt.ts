import type { LoadedInfo } from '../../../model-host/backend.ts';
import type { PromptPiece } from '../../../model-host/operations/generate.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { RawPrompt } from '../generation-request.ts';
import { taggedCalls } from '../tools/tool-call-format.ts';
import type { ChatPrompt } from './chat-prompt.ts';

/** A prompt of either kind, ready for its model. */
export interface RenderedPrompt extends Omit<ChatPrompt, 'pieces'> {
  readonly pieces: readonly PromptPiece[];
  /** The piece that the output begins with. */
  readonly echo?: PromptPiece | undefined;
}

/** A prompt as it was sent: what it says is plain text. Throws where the model cannot fill the gap before a suffix. */
export function rawPrompt(
  { input, suffix, echo = false }: RawPrompt,
  { bosText = '', infillTexts }: LoadedInfo,
): RenderedPrompt {
  const begin = { text: bosText, markup: true };
  const given = typeof input === 'string' ? { text: input, markup: false } : { tokens: input };
  const rest = { thinking: 'off', calls: taggedCalls, stop: [], echo: echo ? given : undefined } as const;
  if (suffix === undefined || suffix === '') {
    // Tokens may have the one that begins a text already; where they have not, the vocabulary adds it.
    return { pieces: 'tokens' in given ? [given] : [begin, given], ...rest };
  }
  if (infillTexts === undefined) {
    throw new ServiceError('model_not_supported', 'suffix: this model was not made to fill a gap');
  }
  const mark = (text: string) => ({ text, markup: true });
  const { prefix, suffix: behind, middle } = infillTexts;
  const pieces = [begin, mark(prefix), given, mark(behind), { text: suffix, markup: false }, mark(middle)];
  return { pieces, ...rest };
}
