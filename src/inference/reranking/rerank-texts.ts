import { specOfModel } from '../../model-host/model-spec.ts';
import type { RerankInput } from '../../model-host/operations/rerank.ts';
import { ServiceError } from '../../protocol/service-error.ts';
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
  const reranked = await inference.pool.run(spec, 'rerank', { ...input, ...seen }, call);
  const strange = reranked.scores.findIndex((score) => !Number.isFinite(score));
  if (strange >= 0)
    throw new ServiceError('inference_failed', `the model gave text ${strange} a score that is not finite`);
  return { model: model.name, ...reranked };
}
