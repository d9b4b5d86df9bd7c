import { ServiceError } from '../../../../protocol/service-error.ts';
import { readWavHeader, type WavHeader } from '../../../wav-header.ts';

/** Sound of one channel, -1 to 1. */
interface Samples {
  readonly rate: number;
  readonly data: Float32Array;
}

const integers = 1;
const floatingPoint = 3;

/** Reads a RIFF WAVE file of integers or floating point numbers; channels are averaged. Throws `invalid_media`. */
export function wavSamples(bytes: Uint8Array): Samples {
  const header = readWavHeader(bytes);
  if (typeof header === 'string') return refuse(header);
  const { encoding, bits, channels, rate } = header;
  const known = encoding === integers ? [8, 16, 24, 32] : encoding === floatingPoint ? [32, 64] : [];
  if (!known.includes(bits)) return refuse(`its samples are of encoding ${encoding} with ${bits} bits`);
  if (channels < 1 || channels > 64 || rate < 1_000 || rate > 768_000) {
    return refuse(`it has ${channels} channels of ${rate} samples a second`);
  }
  return averaged(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), header);
}

function averaged(view: DataView, { encoding, channels, rate, bits, dataStart, dataBytes }: WavHeader): Samples {
  const bytesOfSample = bits / 8;
  const length = Math.min(dataBytes, view.byteLength - dataStart);
  const count = Math.floor(length / (bytesOfSample * channels));
  const data = new Float32Array(count);
  const sample = (at: number): number => {
    if (encoding === floatingPoint) return bits === 32 ? view.getFloat32(at, true) : view.getFloat64(at, true);
    if (bits === 8) return (view.getUint8(at) - 128) / 128;
    if (bits === 16) return view.getInt16(at, true) / 32_768;
    if (bits === 24) return (view.getUint16(at, true) + view.getInt8(at + 2) * 65_536) / 8_388_608;
    return view.getInt32(at, true) / 2_147_483_648;
  };
  for (let frame = 0; frame < count; frame += 1) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel += 1) {
      sum += sample(dataStart + (frame * channels + channel) * bytesOfSample);
    }
    const mean = sum / channels;
    data[frame] = Number.isFinite(mean) ? mean : 0;
  }
  return { rate, data };
}

function refuse(reason: string): never {
  throw new ServiceError('invalid_media', `the sound is no WAV file that can be read: ${reason}`);
}

/** Samples of the sound with another number of them a second. */
export function resampledLength({ rate, data }: Samples, wanted: number): number {
  return Math.floor((data.length * wanted) / rate);
}

/**
 * A part of the sound with another number of samples a second, counted in those, the end exclusive: a windowed sinc over
 * sixteen zero crossings each side.
 */
export function resampled({ rate, data }: Samples, wanted: number, start: number, end: number): Float32Array {
  if (rate === wanted) return data.subarray(start, end);
  const cutoff = Math.min(1, wanted / rate);
  const reach = 16 / cutoff;
  const result = new Float32Array(end - start);
  for (let at = 0; at < result.length; at += 1) {
    const centre = ((start + at) * rate) / wanted;
    const first = Math.max(0, Math.ceil(centre - reach));
    const last = Math.min(data.length - 1, Math.floor(centre + reach));
    let sum = 0;
    for (let from = first; from <= last; from += 1) {
      const distance = from - centre;
      const angle = Math.PI * cutoff * distance;
      const sinc = angle === 0 ? 1 : Math.sin(angle) / angle;
      sum += (data[from] ?? 0) * cutoff * sinc * (0.5 + 0.5 * Math.cos((Math.PI * distance) / reach));
    }
    result[at] = sum;
  }
  return result;
}
