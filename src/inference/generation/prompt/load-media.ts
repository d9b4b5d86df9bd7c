import type { Inference } from '../../inference.ts';
import { findModels } from '../generate.ts';
import type { GenerationRequest } from '../generation-request.ts';

/**
 * Holds the images and sounds of a request to their budgets before a model loads. Nothing is fetched for a model that
 * takes none. Throws `ServiceError`.
 */
export async function loadMedia(
  request: GenerationRequest,
  inference: Pick<Inference, 'models' | 'backends' | 'media'>,
  signal: AbortSignal,
): Promise<void> {
  if (request.media.length === 0) return;
  if (request.media.some(({ from }) => 'url' in from)) findModels(request, inference);
  await inference.media.load(request.media, signal);
}
