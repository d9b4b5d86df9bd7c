import { must } from '../../lib/assert.ts';
import type { ModelPool } from '../../model-host/model-pool.ts';
import type { HostSettings } from '../../model-host/model-spec.ts';
import type { InspectImagesResult } from '../../model-host/operations/images.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { decodeBase64 } from './data-uri.ts';
import type { MediaFetcher } from './fetch-media.ts';
import { MediaBudget, type MediaOptions } from './media-budget.ts';
import type { MediaReference } from './media-reference.ts';
import { mediaTypeOf } from './media-type.ts';
import { soundSamples } from './sound-samples.ts';

interface LoadedImage {
  readonly type: 'image';
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  /** As it is to be seen, in pixels. */
  readonly width: number;
  readonly height: number;
}

interface LoadedSound {
  readonly type: 'audio';
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

export type LoadedMedia = LoadedImage | LoadedSound;

/** Called for each of the media that cannot be loaded, with the reason. What it throws ends the request. */
export type OnMediaFault = (at: number, error: ServiceError) => void;

export const throwMediaFault: OnMediaFault = (_at, error) => {
  throw error;
};

const mediaFaults: readonly string[] = ['invalid_media', 'image_not_found', 'media_too_large', 'media_fetch_failed'];

/** Passes on what concerns one image or sound alone, and throws everything else. */
export function mediaFault(at: number, error: unknown, onFault: OnMediaFault): void {
  if (!(error instanceof ServiceError) || !mediaFaults.includes(error.code)) throw error;
  onFault(at, error);
}

interface MediaLoaderDeps {
  readonly options: MediaOptions;
  readonly fetcher: Pick<MediaFetcher, 'fetch'>;
  readonly pool: Pick<ModelPool, 'run'>;
  readonly settings: HostSettings;
}

/** Bytes of a medium before its pixels are counted. */
interface Arrived {
  /** Place among the references. */
  readonly at: number;
  readonly bytes: Uint8Array;
  readonly mediaType: string;
  readonly where: string;
}

/**
 * Turns the media of a request into bytes within its budget. Call it under a permit and before the model is loaded:
 * what is inline is measured before anything is fetched, and the headers of images before any is decoded.
 */
export class MediaLoader {
  readonly #deps: MediaLoaderDeps;

  constructor(deps: MediaLoaderDeps) {
    this.#deps = deps;
  }

  /** One for each reference. Throws `invalid_media`, `media_too_large`, `media_fetch_failed`. */
  async load(references: readonly MediaReference[], signal?: AbortSignal): Promise<LoadedMedia[]> {
    const loaded = await this.loadEach(references, throwMediaFault, signal);
    return loaded.map((each) => must(each, 'a fault ends the loading'));
  }

  /** The same, undefined for each of which `onFault` is told; what it refuses takes nothing of the budget. */
  async loadEach(
    references: readonly MediaReference[],
    onFault: OnMediaFault,
    signal?: AbortSignal,
  ): Promise<(LoadedMedia | undefined)[]> {
    const budget = new MediaBudget(this.#deps.options);
    const left = new Set(references.keys());
    const trying = async <T>(at: number, work: () => T | Promise<T>): Promise<T | undefined> => {
      try {
        return await work();
      } catch (error) {
        left.delete(at);
        mediaFault(at, error, onFault);
        return undefined;
      }
    };
    for (const [at, { from, where }] of references.entries()) {
      if ('base64' in from) await trying(at, () => budget.takeBytes(from.base64.length, where));
    }
    const arrived: Arrived[] = [];
    for (const at of [...left]) {
      const reference = must(references[at], 'what is left was asked for');
      const media = await trying(at, () => this.#arrive(at, reference, budget, signal));
      if (media !== undefined) arrived.push(media);
    }
    const loaded = new Array<LoadedMedia | undefined>(references.length).fill(undefined);
    const images = arrived.filter(({ mediaType }) => mediaType.startsWith('image/'));
    for (const { at, bytes, mediaType } of arrived) loaded[at] = { type: 'audio', mediaType, bytes };
    for (const [place, size] of (await this.#sizesOf(images, signal)).entries()) {
      const { at, bytes, mediaType, where } = must(images[place], 'one size for each image');
      loaded[at] = await trying(at, () => {
        if ('refused' in size) throw new ServiceError('invalid_media', size.refused);
        budget.takeImage(size.width, size.height, where);
        return { type: 'image' as const, mediaType, bytes, ...size };
      });
    }
    return loaded;
  }

  async #arrive(
    at: number,
    reference: MediaReference,
    budget: MediaBudget,
    signal: AbortSignal | undefined,
  ): Promise<Arrived> {
    const { where } = reference;
    const { bytes, mediaType } = await this.#bytesOf(reference, budget, signal);
    const found = mediaTypeOf(bytes, mediaType, where);
    const samples = soundSamples(bytes, found, where);
    if (samples !== undefined) budget.takeSound(samples, where);
    return { at, bytes, mediaType: found, where };
  }

  async #bytesOf(
    { from, where, mediaType }: MediaReference,
    budget: MediaBudget,
    signal: AbortSignal | undefined,
  ): Promise<{ bytes: Uint8Array; mediaType: string | undefined }> {
    if ('base64' in from) return { bytes: decodeBase64(from.base64, where), mediaType };
    // Nothing is asked for where nothing more may come.
    if (budget.bytesLeft <= 0) budget.takeBytes(1, where);
    const fetched = await this.#deps.fetcher.fetch(from.url, budget.bytesLeft, where, signal);
    budget.takeBytes(fetched.bytes.byteLength, where);
    return { bytes: fetched.bytes, mediaType: mediaType ?? fetched.mediaType };
  }

  async #sizesOf(images: readonly Arrived[], signal: AbortSignal | undefined): Promise<InspectImagesResult['sizes']> {
    if (images.length === 0) return [];
    const { pool, settings } = this.#deps;
    const input = { images: images.map(({ bytes }) => bytes), names: images.map(({ where }) => where) };
    const { sizes } = await pool.run(
      { backend: 'image', settings },
      'inspectImages',
      input,
      signal === undefined ? {} : { signal },
    );
    return sizes;
  }
}
