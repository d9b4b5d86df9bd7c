import { assert } from '../../lib/assert.ts';
import type { ModelPool } from '../host/model-pool.ts';
import type { HostSettings, ModelSpec } from '../host/model-spec.ts';
import { decodeBase64 } from './data-uri.ts';
import type { MediaFetcher } from './fetch-media.ts';
import { type MediaBounds, MediaBudget } from './media-budget.ts';
import type { MediaReference } from './media-reference.ts';
import { mediaTypeOf } from './media-type.ts';
import { soundSamples } from './sound-samples.ts';

export interface LoadedImage {
  readonly type: 'image';
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  /** As it is to be seen, in pixels. */
  readonly width: number;
  readonly height: number;
}

export interface LoadedSound {
  readonly type: 'audio';
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

export type LoadedMedia = LoadedImage | LoadedSound;

export interface MediaLoaderParts {
  readonly bounds: MediaBounds;
  readonly fetcher: MediaFetcher;
  readonly pool: Pick<ModelPool, 'run'>;
  readonly settings: HostSettings;
}

/** The process that reads images. */
export function imageSpec(settings: HostSettings): ModelSpec {
  return { backend: 'image', kind: 'images', name: 'images', bytes: 0, settings };
}

/**
 * Turns the media of a request into bytes within its budget. Call it under a permit and before the model is loaded:
 * what is inline is measured before anything is fetched, and the headers of images before any is decoded.
 */
export class MediaLoader {
  readonly #parts: MediaLoaderParts;

  constructor(parts: MediaLoaderParts) {
    this.#parts = parts;
  }

  /** One for each reference. Throws `invalid_media`, `media_too_large`, `media_fetch_failed`. */
  async load(references: readonly MediaReference[], signal?: AbortSignal): Promise<LoadedMedia[]> {
    const budget = new MediaBudget(this.#parts.bounds);
    for (const { from, where } of references) if ('base64' in from) budget.takeBytes(from.base64.length, where);
    const loaded: { bytes: Uint8Array; mediaType: string; where: string }[] = [];
    for (const reference of references) {
      const { bytes, mediaType } = await this.#bytesOf(reference, budget, signal);
      const { where } = reference;
      const found = mediaTypeOf(bytes, mediaType, where);
      const samples = soundSamples(bytes, found, where);
      if (samples !== undefined) budget.takeSound(samples, where);
      loaded.push({ bytes, mediaType: found, where });
    }
    const images = loaded.filter(({ mediaType }) => mediaType.startsWith('image/'));
    const sizes = await this.#sizesOf(images, signal);
    images.forEach(({ where }, at) => {
      const { width, height } = sizes[at] ?? { width: 0, height: 0 };
      budget.takeImage(width, height, where);
    });
    const sizeOf = new Map(images.map((image, at) => [image, sizes[at]]));
    return loaded.map((each) => {
      const { bytes, mediaType } = each;
      const size = sizeOf.get(each);
      return size === undefined ? { type: 'audio', mediaType, bytes } : { type: 'image', mediaType, bytes, ...size };
    });
  }

  async #bytesOf(
    { from, where, mediaType }: MediaReference,
    budget: MediaBudget,
    signal: AbortSignal | undefined,
  ): Promise<{ bytes: Uint8Array; mediaType: string | undefined }> {
    if ('base64' in from) return { bytes: decodeBase64(from.base64, where), mediaType };
    // Nothing is asked for where nothing more may come.
    if (budget.bytesLeft <= 0) budget.takeBytes(1, where);
    const fetched = await this.#parts.fetcher.fetch(from.url, budget.bytesLeft, where, signal);
    budget.takeBytes(fetched.bytes.byteLength, where);
    return { bytes: fetched.bytes, mediaType: mediaType ?? fetched.mediaType };
  }

  async #sizesOf(
    images: readonly { bytes: Uint8Array; where: string }[],
    signal: AbortSignal | undefined,
  ): Promise<readonly { width: number; height: number }[]> {
    if (images.length === 0) return [];
    const { pool, settings } = this.#parts;
    const input = { images: images.map(({ bytes }) => bytes), names: images.map(({ where }) => where) };
    const { sizes } = await pool.run(
      imageSpec(settings),
      'inspectImages',
      input,
      signal === undefined ? {} : { signal },
    );
    assert(sizes.length === images.length, 'one size for each image');
    return sizes;
  }
}
