import { must } from '../../lib/assert.ts';
import type { PrepareImageInput } from '../../model-host/operations/images.ts';
import type { Pixels } from '../../model-host/operations/pixels.ts';
import type { InstalledModel } from '../../models/installed-model.ts';
import { readFolderJson } from '../../models/model-folder.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Inference } from '../inference.ts';
import { type LoadedMedia, mediaFault, type OnMediaFault, throwMediaFault } from './media-loader.ts';
import type { MediaReference } from './media-reference.ts';

type Preparation = Pick<PrepareImageInput, 'fit' | 'width' | 'height' | 'normalize'>;

/** As CLIP models were trained, where a model does not say otherwise. */
const usualMean = [0.48145466, 0.4578275, 0.40821073];
const usualDeviation = [0.26862954, 0.26130258, 0.27577711];
const edgeMax = 4_096;

/**
 * Fetches images within the budget of the request and makes them what the model reads. Call it under a permit. Throws
 * `invalid_media`, `media_too_large`, `media_fetch_failed`, and `model_not_supported` where the model does not look at
 * them.
 */
export async function loadPixels(
  inference: Inference,
  model: InstalledModel,
  references: readonly MediaReference[],
  signal: AbortSignal,
): Promise<Pixels[]> {
  const pixels = await loadEachPixels(inference, model, references, throwMediaFault, signal);
  return pixels.map((each) => must(each, 'a fault ends the loading'));
}

/** The same, undefined for each image of which `onFault` is told. */
export async function loadEachPixels(
  { media, pool, settings }: Inference,
  model: InstalledModel,
  references: readonly MediaReference[],
  onFault: OnMediaFault,
  signal: AbortSignal,
): Promise<(Pixels | undefined)[]> {
  if (references.length === 0) return [];
  const loaded = await media.loadEach(references, onFault, signal);
  const preparation = preparationOf(readFolderJson(model.directory, 'preprocessor_config.json') ?? {});
  const pixels = new Array<Pixels | undefined>(references.length).fill(undefined);
  for (const [at, each] of loaded.entries()) {
    if (each === undefined) continue;
    const name = references[at]?.where ?? 'the image';
    const unread = whyUnread(each, model, name);
    if (unread !== undefined) {
      onFault(at, unread);
      continue;
    }
    try {
      const input = { ...preparation, name, image: each.bytes };
      const { width, height, data } = await pool.run({ backend: 'image', settings }, 'prepareImage', input, { signal });
      if (!(data instanceof Float32Array)) throw new TypeError('normalised pixels are floating point numbers');
      pixels[at] = { width, height, data };
    } catch (error) {
      mediaFault(at, error, onFault);
    }
  }
  return pixels;
}

/** Refuses what the model has nothing to look at it with. */
function whyUnread({ type }: LoadedMedia, { name, kind, companions }: InstalledModel, where: string) {
  const looks = kind === 'readers' || companions?.vision !== undefined;
  if (!looks) return new ServiceError('model_not_supported', `${where}: the model "${name}" reads text only`);
  if (type === 'image') return undefined;
  return new ServiceError('model_not_supported', `${where} is a sound; the model "${name}" reads images`);
}

/** How images are made ready, by `preprocessor_config.json` as image models come with it. */
function preparationOf(config: Readonly<Record<string, unknown>>): Preparation {
  const crops = config.do_center_crop !== false && config.crop_size !== undefined;
  const size = sizeOf(crops ? config.crop_size : config.size);
  const distorts = !crops && size.exact;
  const plain = config.do_normalize === false;
  const mean = plain ? [0, 0, 0] : (channels(config.image_mean) ?? usualMean);
  const deviation = plain ? [1, 1, 1] : (channels(config.image_std) ?? usualDeviation);
  return { fit: distorts ? 'fill' : 'cover', width: size.width, height: size.height, normalize: { mean, deviation } };
}

/** `exact` where both edges are given: then the shape of the image does not count. */
function sizeOf(size: unknown): { width: number; height: number; exact: boolean } {
  const edges = (typeof size === 'object' && size !== null ? size : { shortest_edge: size }) as Record<string, unknown>;
  const { width, height, shortest_edge } = edges;
  if (isEdge(width) && isEdge(height)) return { width, height, exact: true };
  const edge = isEdge(shortest_edge) ? shortest_edge : 224;
  return { width: edge, height: edge, exact: false };
}

function isEdge(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= edgeMax;
}

function channels(value: unknown): number[] | undefined {
  if (!Array.isArray(value) || value.length !== 3) return undefined;
  return value.every((each) => typeof each === 'number' && Number.isFinite(each)) ? value : undefined;
}
