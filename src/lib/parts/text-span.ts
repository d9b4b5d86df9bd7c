/** Vectors of one document in one part. */
export const setMax = 4_096;
export const hashBytes = 16;

/** The piece of a text that a vector stands for. */
export interface TextSpan {
  /** In bytes of the text; the end is exclusive. */
  start: number;
  end: number;
  /** 16 bytes: what the vector was made from, alike for equal texts of one embedder. */
  hash: Uint8Array;
}
