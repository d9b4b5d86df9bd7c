/** What one answered request took, for metrics. */
export interface InferenceWork {
  /** `embed`, `rerank`, ... */
  readonly operation: string;
  /** Texts, pairs, rows or chunks. */
  readonly items: number;
  /** Tokens that a model read. */
  readonly tokens: number;
  readonly durationMs: number;
}
