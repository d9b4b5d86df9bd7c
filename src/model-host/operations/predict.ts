export interface PredictInput {
  /** Rows of features one after another. */
  readonly features: Float64Array;
}

export interface PredictResult {
  /** Numbers of each row one after another. */
  readonly predictions: Float32Array | Float64Array;
}
