export interface TranscribeInput {
  /** A WAV file. */
  readonly audio: Uint8Array;
  /** Two or three letters; without it the model guesses. */
  readonly language: string | undefined;
}

export interface TranscribeResult {
  readonly text: string;
  /** What was spoken, as far as the model tells languages apart. */
  readonly language: string | undefined;
  readonly tokens: number;
}
