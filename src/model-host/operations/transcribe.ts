export interface TranscribeInput {
  /** A WAV file. */
  readonly audio: Uint8Array;
  /** Two or three letters; without it the model guesses. */
  readonly language: string | undefined;
  /** Write it down in English, whatever was spoken. */
  readonly translate: boolean;
}

/** The text of one stretch of the sound, as long as the model hears at one time. */
export interface SpokenSegment {
  /** In seconds from the beginning. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly tokens: readonly number[];
  /** The mean of the logarithms of the chances of its tokens, the one that ends them included. */
  readonly meanLogprob: number;
  /** The chance that nothing is said, of models that have a token for it. */
  readonly silenceChance: number | undefined;
}

export interface TranscribeResult {
  /** Stretches in which something was said. */
  readonly segments: readonly SpokenSegment[];
  /** Of the sound, in seconds. */
  readonly duration: number;
  readonly text: string;
  /** The text of a stretch was cut at the most tokens that it may have. */
  readonly truncated: boolean;
  /** The spoken language, as far as the model tells languages apart. */
  readonly language: string | undefined;
  readonly tokens: number;
}
