import sharp, { type Sharp } from 'sharp';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { LoadBackend } from '../../backend.ts';
import type { ImageReaderSpec } from '../../model-spec.ts';
import type {
  InspectImagesInput,
  InspectImagesResult,
  PrepareImageInput,
  PrepareImageResult,
} from '../../operations/images.ts';

/** An image whose header says more is never decoded; budgets refuse it long before. */
const pixelsMax = 512 * 1024 * 1024;
const channels = 3;
const formats = ['png', 'jpeg', 'webp', 'gif'];

/** Reads and resizes images. Files come from strangers: only these formats, only the first frame. */
export const load: LoadBackend<ImageReaderSpec> = (spec) => {
  sharp.cache(false);
  sharp.concurrency(Math.max(1, spec.settings.threads));
  return Promise.resolve({
    info: {},
    handlers: { inspectImages, prepareImage },
    close: () => Promise.resolve(),
  });
};

async function inspectImages({ images, names }: InspectImagesInput): Promise<InspectImagesResult> {
  const sizes = await Promise.all(
    images.map(async (image, at) => {
      const name = names[at] ?? 'the image';
      try {
        // Headers may be asked about any size: nothing is decoded here.
        const { format, autoOrient } = await sharp(image, { limitInputPixels: false, pages: 1 }).metadata();
        if (!formats.includes(format)) return { refused: `${name} has the format ${format}, which is not taken` };
        return { width: autoOrient.width, height: autoOrient.height };
      } catch {
        return { refused: unreadable(name) };
      }
    }),
  );
  return { sizes };
}

async function prepareImage(input: PrepareImageInput): Promise<PrepareImageResult> {
  const { image, name, fit, width, height, encode, normalize } = input;
  try {
    const whole = sharp(image, { limitInputPixels: pixelsMax, pages: 1, failOn: 'truncated', autoOrient: true });
    const resized = flat(whole).resize({ width, height, fit, withoutEnlargement: fit === 'inside' });
    const written = encode === undefined ? resized.raw() : resized.toFormat(encode);
    const { data, info } = await written.toBuffer({ resolveWithObject: true });
    const size = { width: info.width, height: info.height };
    return { ...size, data: normalize === undefined ? data : planes(data, normalize.mean, normalize.deviation) };
  } catch (error) {
    throw new ServiceError('invalid_media', unreadable(name), { cause: error });
  }
}

/** Three channels of eight bits; what can be seen through becomes white. */
function flat(image: Sharp): Sharp {
  return image.flatten({ background: '#ffffff' }).toColourspace('srgb').removeAlpha();
}

function planes(rgb: Uint8Array, mean: readonly number[], deviation: readonly number[]): Float32Array {
  const size = rgb.length / channels;
  const values = new Float32Array(rgb.length);
  for (let channel = 0; channel < channels; channel += 1) {
    const scale = 1 / (255 * (deviation[channel] ?? 1));
    const shift = (mean[channel] ?? 0) / (deviation[channel] ?? 1);
    const start = channel * size;
    for (let at = 0; at < size; at += 1) values[start + at] = (rgb[at * channels + channel] ?? 0) * scale - shift;
  }
  return values;
}

/** Without the words of the library, which are about its buffers. */
function unreadable(name: string): string {
  return `${name} is not an image that can be read`;
}
