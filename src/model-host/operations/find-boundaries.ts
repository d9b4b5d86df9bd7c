export interface FindBoundariesInput {
  readonly text: string;
  /** How sure the model has to be, 0 to 1. */
  readonly threshold: number;
}

export interface FindBoundariesResult {
  /** Where parts of the text end, in units of the string, rising. */
  readonly places: Uint32Array;
  /** Tokens that the model read. */
  readonly tokens: number;
}
