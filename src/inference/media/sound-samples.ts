import { ServiceError } from '../../protocol/service-error.ts';

const riffHeadBytes = 12;
const chunkHeadBytes = 8;
/** Writers that do not know the length put these there. */
const unknownLengths = [0, 0xffff_ffff];

/**
 * Samples of all channels that the header of a sound claims; `undefined` where headers of the kind do not say.
 * Throws `invalid_media` for a header that cannot be.
 */
export function soundSamples(bytes: Uint8Array, mediaType: string, where: string): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (mediaType === 'audio/wav') return wavSamples(view, where);
  return mediaType === 'audio/flac' ? flacSamples(view, where) : undefined;
}

function wavSamples(view: DataView, where: string): number {
  let sampleBytes = 0;
  for (let at = riffHeadBytes; at + chunkHeadBytes <= view.byteLength; ) {
    const name = view.getUint32(at);
    const length = view.getUint32(at + 4, true);
    const start = at + chunkHeadBytes;
    // 'fmt '
    if (name === 0x666d7420 && start + 16 <= view.byteLength) {
      const channels = view.getUint16(start + 2, true);
      sampleBytes = view.getUint16(start + 12, true) / channels;
    }
    // 'data'
    if (name === 0x64617461) {
      if (!(sampleBytes >= 1 && sampleBytes <= 8)) break;
      return (unknownLengths.includes(length) ? view.byteLength - start : length) / sampleBytes;
    }
    at = start + length + (length % 2);
  }
  throw malformed(where, 'WAV');
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
