import { MiB } from '../../lib/units.ts';
import { ServiceError } from '../../protocol/service-error.ts';

const encodedBytesMax = 100 * MiB;
const decodedBytesMax = 512 * MiB;
const bytesPerRequest = 16 * MiB;
const bytesPerPixel = 16;
const bytesPerSample = 4;

/** The operator's settings for media. */
export interface MediaOptions {
  /** Of one request, inline and fetched together; 0 turns media off. */
  readonly downloadBytesMax: number;
  /** Requests that may be at work at one time; 0 for no bound. */
  readonly concurrentMax: number;
  /** Longer edge of an image, in pixels. */
  readonly edgeMax: number;
}

/** The budget for the media of one request. Every refusal is `media_too_large`, and takes nothing. */
export class MediaBudget {
  readonly #options: MediaOptions;
  readonly #bytesMax: number;
  readonly #decodedMax: number;
  #bytes = 0;
  #decoded = 0;

  constructor(options: MediaOptions) {
    this.#options = options;
    const share = options.concurrentMax > 0 ? bytesPerRequest * options.concurrentMax : Number.POSITIVE_INFINITY;
    this.#bytesMax = Math.min(encodedBytesMax, options.downloadBytesMax, share);
    this.#decodedMax = Math.min(decodedBytesMax, share);
  }

  /** Bytes that may still come. */
  get bytesLeft(): number {
    return this.#bytesMax - this.#bytes;
  }

  /** Counts bytes as they were sent: base64 as it is, not what it decodes to. */
  takeBytes(bytes: number, where: string): void {
    if (this.#bytes + bytes <= this.#bytesMax) {
      this.#bytes += bytes;
      return;
    }
    const why = this.#bytesMax === 0 ? 'media are turned off' : `at most ${this.#bytesMax} bytes are taken`;
    throw new ServiceError('media_too_large', `${where}: the media of a request are too large; ${why}`);
  }

  takeImage(width: number, height: number, where: string): void {
    const { edgeMax } = this.#options;
    if (Math.max(width, height) > edgeMax) {
      throw new ServiceError(
        'media_too_large',
        `${where}: the image is ${width} x ${height}; at most ${edgeMax} pixels an edge are taken`,
      );
    }
    this.takePixels(width, height, where);
  }

  /** An image that is made smaller before anybody sees it. */
  takePixels(width: number, height: number, where: string): void {
    const pixels = Math.floor(this.#decodedMax / bytesPerPixel);
    this.#decode(
      width * height * bytesPerPixel,
      `${where}: the images of a request may have ${pixels} pixels together`,
    );
  }

  /** Samples of all channels together. */
  takeSound(samples: number, where: string): void {
    const most = Math.floor(this.#decodedMax / bytesPerSample);
    this.#decode(samples * bytesPerSample, `${where}: the sounds of a request may have ${most} samples together`);
  }

  #decode(bytes: number, refusal: string): void {
    if (this.#decoded + bytes > this.#decodedMax) throw new ServiceError('media_too_large', refusal);
    this.#decoded += bytes;
  }
}
