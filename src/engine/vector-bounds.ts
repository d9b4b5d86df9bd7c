import { callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

interface VectorBounds {
  /** Sum of squares of a dense vector, but for the metric `cosine`: distances of longer ones do not fit a float32. */
  squaresMax: number;
  /** Entries of a sparse vector. */
  sparseEntriesMax: number;
}

let known: VectorBounds | undefined;

/** The bounds of vectors, written or searched by: the engine gives them for both. */
export function vectorBounds(): VectorBounds {
  known ??= callNative(() => nativeAddon().vectorBounds());
  return known;
}
