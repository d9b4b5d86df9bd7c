import { specOfModel } from '../host/model-spec.ts';
import type { RerankInput } from '../host/operations/rerank.ts';
import type { Inference } from '../inference.ts';

export interface RerankRequest extends RerankInput {
  readonly model: string;
}

export interface Reranked {
  /** The model that was used. */
  readonly model: string;
  /** One for each text, in their order; higher is better. */
  readonly scores: Float32Array;
  readonly tokens: number;
}

/** How well each text answers the query. Throws `ServiceError`. */
export async function rerankTexts(
  { models, pool, settings }: Inference,
  { model: name, ...input }: RerankRequest,
  signal?: AbortSignal,
): Promise<Reranked> {
  const model = models.require('rerankers', name);
  const options = signal === undefined ? {} : { signal };
  return { model: model.name, ...(await pool.run(specOfModel(model, settings), 'rerank', input, options)) };
}
