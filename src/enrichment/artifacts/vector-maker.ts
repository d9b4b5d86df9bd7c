import type { EmbedItem } from '../../inference/embeddings/embed-items.ts';
import type { Embedder } from '../../inference/providers/embedder.ts';
import { must } from '../../lib/assert.ts';
import { type SliceBounds, slicesWithin } from '../../lib/concurrency/slices-within.ts';
import { denseSetBody } from '../../lib/parts/dense-set-part.ts';
import { sourceHash } from '../derive-source.ts';
import { type Embedded, embedTexts } from '../embed-texts.ts';
import { hashedImage, imageItem } from '../media/image-item.ts';
import { type Made, type PartMaker, type SourceContent, textIn } from './part-maker.ts';

interface VectorSetOptions {
  /** Everything that a vector depends on, beside its text. */
  readonly fingerprint: string;
  /** Of the texts in one request to the embedder. */
  readonly request: SliceBounds;
}

/**
 * One dense vector of each chunk of a source, as one part; a source without chunks has one for the whole of its text, or
 * for the image that it consists of. Each has the places of its chunk, and a hash by `fingerprint`.
 */
export function vectorSetMaker(
  embedder: () => Embedder,
  dimension: number,
  { fingerprint, request }: VectorSetOptions,
): PartMaker {
  return async (sources, call) => {
    const chunked = sources.map(piecesOf);
    const embedded: Embedded[] = [];
    for (const pieces of slicesWithin(chunked.flat(), ({ hashed }) => Buffer.byteLength(hashed), request)) {
      const items = pieces.map(({ item }) => item);
      embedded.push(...(await embedTexts(embedder(), items, dimension, call)));
    }
    let next = 0;
    return chunked.map((chunks): Made => {
      const own = embedded.slice(next, next + chunks.length);
      next += chunks.length;
      if (chunks.length === 0) return { kind: 'none' };
      const failed = own.find((each) => 'error' in each);
      if (failed && 'error' in failed) return { kind: 'failed', error: failed.error };
      const vectors = own.map((each, at) => {
        const { start, end, hashed } = must(chunks[at], 'a chunk for each vector');
        const vector = 'vector' in each ? (each.vector as Float32Array) : new Float32Array(dimension);
        return { start, end, vector, hash: sourceHash(fingerprint, hashed) };
      });
      const bytes = vectors.length * dimension * Float32Array.BYTES_PER_ELEMENT;
      return { kind: 'part', bytes, body: (partId, hash) => denseSetBody(partId, vectors, hash) };
    });
  };
}

/** The source of one vector. */
interface Piece {
  readonly start: number;
  readonly end: number;
  readonly item: EmbedItem;
  readonly hashed: string;
}

function piecesOf(source: SourceContent): Piece[] {
  const { parts, chunks } = source;
  if (chunks !== undefined) return chunks.map(({ start, end, text }) => ({ start, end, item: text, hashed: text }));
  const [only] = parts;
  if (parts.length === 1 && typeof only === 'object') {
    return [{ start: 0, end: 0, item: imageItem(only), hashed: hashedImage(only) }];
  }
  const text = textIn(source);
  return [{ start: 0, end: [...text].length, item: text, hashed: text }];
}
