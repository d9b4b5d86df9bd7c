import { DataDirectoryError } from '../directory/data-directory-error.ts';
import type { KeptAnswer } from '../range/request-answers.ts';
import type { RangeId } from '../write-request.ts';

/** One range's part of a write over several ranges: row images, to be applied as they are. */
export interface RedoPart {
  rangeId: RangeId;
  generation: number;
  /** Entries in the range's log after this one. */
  entryIndex: number;
  frame: Uint8Array<ArrayBuffer>;
  /** Kept by this range for repetitions of the request. */
  answer?: KeptAnswer;
}

interface PartHead {
  rangeId: RangeId;
  generation: number;
  entryIndex: number;
  frameBytes: number;
  answer?: Omit<KeptAnswer, 'bodyHash'> & { bodyHash: string };
}

const formatVersion = 1;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Layout: u16 version, u16 zero, u32 bytes of a JSON list of parts, that list, then the frames one after another. */
export function encodeRedo(parts: readonly RedoPart[]): Uint8Array {
  const heads = parts.map(
    ({ rangeId, generation, entryIndex, frame, answer }): PartHead => ({
      rangeId,
      generation,
      entryIndex,
      frameBytes: frame.byteLength,
      ...(answer && { answer: { ...answer, bodyHash: Buffer.from(answer.bodyHash).toString('base64') } }),
    }),
  );
  const list = encoder.encode(JSON.stringify(heads));
  const frames = parts.reduce((sum, part) => sum + part.frame.byteLength, 0);
  const bytes = new Uint8Array(8 + list.byteLength + frames);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, formatVersion, true);
  view.setUint32(4, list.byteLength, true);
  bytes.set(list, 8);
  let at = 8 + list.byteLength;
  for (const { frame } of parts) {
    bytes.set(frame, at);
    at += frame.byteLength;
  }
  return bytes;
}

export function decodeRedo(bytes: Uint8Array): RedoPart[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint16(0, true);
  if (version !== formatVersion) {
    const message = `the catalog has a redo record of format ${version}; this release knows format ${formatVersion}`;
    throw new DataDirectoryError(
      'newer_format',
      message,
      'start the release that wrote this directory, or a later one',
    );
  }
  let at = 8 + view.getUint32(4, true);
  const heads = JSON.parse(decoder.decode(bytes.subarray(8, at))) as PartHead[];
  return heads.map(({ frameBytes, answer, ...head }) => {
    const frame = bytes.slice(at, at + frameBytes);
    at += frameBytes;
    if (!answer) return { ...head, frame };
    return { ...head, frame, answer: { ...answer, bodyHash: new Uint8Array(Buffer.from(answer.bodyHash, 'base64')) } };
  });
}
