import { readWavHeader } from '../../model-host/wav-header.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/**
 * Samples of all channels that the header of a sound claims; `undefined` where headers of the kind do not say.
 * Throws `invalid_media` for a header that cannot be.
 */
export function soundSamples(bytes: Uint8Array, mediaType: string, where: string): number | undefined {
  if (mediaType === 'audio/wav') return wavSamples(bytes, where);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return mediaType === 'audio/flac' ? flacSamples(view, where) : undefined;
}

function wavSamples(bytes: Uint8Array, where: string): number {
  const header = readWavHeader(bytes);
  if (typeof header === 'string') throw malformed(where, 'WAV');
  const sampleBytes = header.frameBytes / header.channels;
  if (!(sampleBytes >= 1 && sampleBytes <= 8)) throw malformed(where, 'WAV');
  return header.dataBytes / sampleBytes;
}

function flacSamples(view: DataView, where: string): number | undefined {
  // A mark of four bytes, the head of the first block, and that block: it describes the stream.
  if (view.byteLength < 42 || (view.getUint8(4) & 0x7f) !== 0) throw malformed(where, 'FLAC');
  const packed = view.getBigUint64(18);
  const channels = Number((packed >> 41n) & 0x7n) + 1;
  const perChannel = Number(packed & 0xf_ffff_ffffn);
  return perChannel === 0 ? undefined : perChannel * channels;
}

function malformed(where: string, kind: string): ServiceError {
  return new ServiceError('invalid_media', `${where} is no ${kind} sound that can be read`);
}
