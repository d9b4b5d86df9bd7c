import type { Embedder } from '../../inference/providers/embedder.ts';
import { must } from '../../lib/assert.ts';
import { type SliceBounds, slicesWithin } from '../../lib/concurrency/slices-within.ts';
import type { TextChunk } from '../../lib/parts/chunk-set-part.ts';
import { denseSetBody } from '../../lib/parts/dense-set-part.ts';
import { sourceHash } from '../derive-source.ts';
import { type Embedded, embedTexts } from '../embed-texts.ts';
import { type Made, type PartMaker, type SourceContent, textIn } from './part-maker.ts';

interface VectorSetOptions {
  /** Everything that a vector depends on, beside its text. */
  readonly fingerprint: string;
  /** Of the texts in one request to the embedder. */
  readonly request: SliceBounds;
}

/**
 * One dense vector of each chunk of a source, as one part; a source without chunks has one for the whole of its text. Each
 * has the places of its chunk, and a hash by `fingerprint`.
 */
export function vectorSetMaker(
  embedder: () => Embedder,
  dimension: number,
  { fingerprint, request }: VectorSetOptions,
): PartMaker {
  return async (sources, call) => {
    const chunked = sources.map(chunksOf);
    const embedded: Embedded[] = [];
    for (const chunks of slicesWithin(chunked.flat(), ({ text }) => Buffer.byteLength(text), request)) {
      const texts = chunks.map(({ text }) => text);
      embedded.push(...(await embedTexts(embedder(), texts, dimension, call)));
    }
    let next = 0;
    return chunked.map((chunks): Made => {
      const own = embedded.slice(next, next + chunks.length);
      next += chunks.length;
      if (chunks.length === 0) return { kind: 'none' };
      const failed = own.find((each) => 'error' in each);
      if (failed && 'error' in failed) return { kind: 'failed', error: failed.error };
      const vectors = own.map((each, at) => {
        const { start, end, text } = must(chunks[at], 'a chunk for each vector');
        const vector = 'vector' in each ? (each.vector as Float32Array) : new Float32Array(dimension);
        return { start, end, vector, hash: sourceHash(fingerprint, text) };
      });
      return { kind: 'part', body: (partId, hash) => denseSetBody(partId, vectors, hash) };
    });
  };
}

function chunksOf(source: SourceContent): readonly TextChunk[] {
  const text = textIn(source);
  return source.chunks ?? [{ start: 0, end: [...text].length, text }];
}
