/** One text as characters, or as tokens of the model. */
export type EmbedText = string | readonly number[];

export interface EmbedInput {
  /** Prefixes are already in front of them. */
  readonly texts: readonly EmbedText[];
  /** Where a text that is too long loses its surplus; without it such a text fails. */
  readonly truncate: 'start' | 'end' | undefined;
  /** One text that fails makes the vectors of the others needless. */
  readonly allOrNothing?: boolean;
  /**
   * The texts follow one another in one text. They are read together, as far as they fit, and each vector is the mean of the
   * tokens of its own text.
   */
  readonly together?: boolean;
}

/** Why one text could not be embedded. */
export interface EmbedFault {
  readonly index: number;
  readonly code: 'context_length_exceeded' | 'invalid_request';
  readonly message: string;
}

export interface EmbedResult {
  /** Vectors of `dimension` numbers one after another, in the order of the texts; zeros where one failed. */
  readonly dense?: Float32Array;
  readonly dimension: number;
  /** Instead of `dense`, for sparse models: ascending indices and positive weights of each text. */
  readonly sparse?: readonly { readonly indices: Uint32Array; readonly values: Float32Array }[];
  /** Tokens of each text, special ones included. */
  readonly tokens: Uint32Array;
  readonly faults: readonly EmbedFault[];
}
