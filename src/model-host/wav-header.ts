/** The header of a RIFF WAVE file. */
export interface WavHeader {
  /** 1 for integers, 3 for floating point numbers; others are compressed. */
  readonly encoding: number;
  readonly channels: number;
  /** Samples of a channel in a second. */
  readonly rate: number;
  /** Bits of one sample. */
  readonly bits: number;
  /** Bytes of one sample of every channel. */
  readonly frameBytes: number;
  /** Where the samples begin. */
  readonly dataStart: number;
  /** Bytes of samples, as claimed: there may be fewer. A writer that did not know the length claims all up to the end. */
  readonly dataBytes: number;
}

const riffHeadBytes = 12;
const chunkHeadBytes = 8;
const formatBytes = 16;
/** The encoding stands in the first bytes of a longer description. */
const extensible = 0xfffe;
/**
 * A writer into a pipe does not know the length: it puts 0 or the most there, or what is nearly the most of a signed
 * number (SoX, eSpeak), or one more than that (arecord).
 */
const unknownLengthMin = 0x7fff_f000;
const formatName = 0x666d7420;
const dataName = 0x64617461;

/** Reads the header of a WAV file, or says why there is none. Nothing in it is checked against the file or against sense. */
export function readWavHeader(bytes: Uint8Array): WavHeader | string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let format: Omit<WavHeader, 'dataStart' | 'dataBytes'> | undefined;
  for (let at = riffHeadBytes; at + chunkHeadBytes <= view.byteLength; ) {
    const name = view.getUint32(at);
    const length = view.getUint32(at + 4, true);
    const start = at + chunkHeadBytes;
    if (name === formatName) {
      if (Math.min(length, view.byteLength - start) < formatBytes) return 'its format is cut';
      const written = view.getUint16(start, true);
      const isLong = written === extensible && length >= 26 && start + 26 <= view.byteLength;
      format = {
        encoding: isLong ? view.getUint16(start + 24, true) : written,
        channels: view.getUint16(start + 2, true),
        rate: view.getUint32(start + 4, true),
        frameBytes: view.getUint16(start + 12, true),
        bits: view.getUint16(start + 14, true),
      };
    }
    if (name === dataName) {
      if (format === undefined) return 'it has no format in front of its data';
      const dataBytes = length === 0 || length >= unknownLengthMin ? view.byteLength - start : length;
      return { ...format, dataStart: start, dataBytes };
    }
    // Parts begin at even places.
    at = start + length + (length % 2);
  }
  return 'it has no data';
}
