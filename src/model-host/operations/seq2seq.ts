import type { Pixels } from './pixels.ts';

/** The input of an encoder, about which a decoder writes: texts, or images. */
export interface Seq2SeqInput {
  readonly sources: readonly (string | Pixels)[];
  /** The beginning of each output, for models that take their task that way. */
  readonly prompt: string | undefined;
  /** Tokens of one output at most. */
  readonly tokensMax: number;
}

export interface Seq2SeqResult {
  /** One for each source. */
  readonly texts: readonly string[];
  /** Whether each was cut at the most tokens that it may have. */
  readonly truncated: readonly boolean[];
  /** Tokens of texts that were read. */
  readonly promptTokens: number;
  readonly completionTokens: number;
}
