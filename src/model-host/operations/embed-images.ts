import type { Pixels } from './pixels.ts';

export interface EmbedImagesInput {
  readonly images: readonly Pixels[];
}

export interface EmbedImagesResult {
  /** Vectors of `dimension` numbers one after another. */
  readonly dense: Float32Array;
  readonly dimension: number;
}
