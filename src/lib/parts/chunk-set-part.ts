import { assert } from '../assert.ts';
import { partBody, partForm, payloadOf } from './part-body.ts';
import { PayloadReader } from './payload-reader.ts';

/** Chunks of one document. */
export const chunksMax = 4_096;

export interface TextChunk {
  /** Where it lies in the text that was cut, in characters (Unicode code points); the end is exclusive. */
  start: number;
  end: number;
  text: string;
}

const encoder = new TextEncoder();

/**
 * Form 5: the chunks of a text of one document, in the order of the text.
 *
 *     0 count u32, then for each chunk: start u32, end u32, text bytes u32, the text (UTF-8)
 */
export function chunkSetBody(
  partId: number,
  chunks: readonly TextChunk[],
  sourceHash?: Uint8Array,
): Uint8Array<ArrayBuffer> {
  assert(chunks.length <= chunksMax, 'a set of chunks with a count out of bounds');
  const pieces: Uint8Array[] = [new Uint8Array(Uint32Array.of(chunks.length).buffer)];
  for (const { start, end, text } of chunks) {
    const bytes = encoder.encode(text);
    pieces.push(new Uint8Array(Uint32Array.of(start, end, bytes.byteLength).buffer), bytes);
  }
  return partBody(partId, partForm.chunkSet, Buffer.concat(pieces), sourceHash);
}

/** The chunks of a body of form 5. */
export function readChunkSet(body: Uint8Array): TextChunk[] {
  const reader = new PayloadReader(payloadOf(body));
  const chunks = Array.from({ length: reader.count(12) }, (): TextChunk => {
    const [start, end, bytes] = [reader.u32(), reader.u32(), reader.u32()];
    return { start, end, text: reader.text(bytes) };
  });
  reader.end();
  return chunks;
}
