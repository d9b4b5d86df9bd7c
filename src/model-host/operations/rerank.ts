import type { Pixels } from './pixels.ts';

export interface RerankInput {
  readonly query: string;
  readonly texts: readonly string[];
  /** Beside each text, where the model looks at images. */
  readonly images?: readonly (readonly Pixels[])[];
  /** Where a pair that is too long loses the surplus of its text; without it the request fails. */
  readonly truncate: 'start' | 'end' | undefined;
  /** Only the first tokens of each text are read. */
  readonly textTokensMax?: number | undefined;
}

export interface RerankResult {
  /** One for each text, in their order; higher is better. */
  readonly scores: Float32Array;
  /** Tokens of all pairs. */
  readonly tokens: number;
}
