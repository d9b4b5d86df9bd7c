/** An image as a model reads it: one plane for each of red, green and blue, scaled as the model was trained. */
export interface Pixels {
  /** 3 x height x width. */
  readonly data: Float32Array;
  readonly width: number;
  readonly height: number;
}
