export interface TokenizeInput {
  readonly texts: readonly string[];
  /** With the tokens that the model wants around a text. */
  readonly special: boolean;
}

export interface TokenPiece {
  readonly text: string;
  readonly special: boolean;
}

export interface TokenizeResult {
  /** For each text. */
  readonly tokens: readonly Uint32Array[];
  /** The text that stands for each token of each text, and whether it is a special one. */
  readonly pieces: readonly (readonly TokenPiece[])[];
}

export interface DetokenizeInput {
  readonly tokens: readonly number[];
}

export interface DetokenizeResult {
  readonly text: string;
}
