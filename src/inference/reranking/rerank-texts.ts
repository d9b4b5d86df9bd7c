import { specOfModel } from '../../model-host/model-spec.ts';
import type { RerankInput } from '../../model-host/operations/rerank.ts';
import type { InferenceCall } from '../admission.ts';
import type { Inference } from '../inference.ts';
import { loadPixels } from '../media/image-pixels.ts';
import type { MediaReference } from '../media/media-reference.ts';

export interface RerankRequest extends Omit<RerankInput, 'images'> {
  readonly model: string;
  /** Images beside each text. */
  readonly images?: readonly (readonly MediaReference[])[];
}

export interface Reranked {
  /** The model that was used. */
  readonly model: string;
  /** One for each text, in their order; higher is better. */
  readonly scores: Float32Array;
  readonly tokens: number;
}

/** How well each text, with the images beside it, answers the query. Throws `ServiceError`. */
export async function rerankTexts(
  inference: Inference,
  { model: name, images = [], ...input }: RerankRequest,
  call: InferenceCall,
): Promise<Reranked> {
  const model = inference.models.require('rerankers', name);
  const references = images.flat();
  const pixels = await loadPixels(inference, model, references, call.signal);
  let next = 0;
  const grouped = images.map(({ length }) => {
    next += length;
    return pixels.slice(next - length, next);
  });
  const spec = specOfModel(model, inference.settings);
  const seen = pixels.length === 0 ? {} : { images: grouped };
  return { model: model.name, ...(await inference.pool.run(spec, 'rerank', { ...input, ...seen }, call)) };
}
