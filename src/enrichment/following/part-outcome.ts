import { denseBody } from '../../lib/parts/dense-part.ts';
import { denseSetBody, type SpanVector } from '../../lib/parts/dense-set-part.ts';
import { sparseBody } from '../../lib/parts/sparse-part.ts';
import { type SpanSparseVector, sparseSetBody } from '../../lib/parts/sparse-set-part.ts';
import type { TextSpan } from '../../lib/parts/text-span.ts';
import type { ServiceError } from '../../protocol/service-error.ts';
import type { Vector } from '../embed-texts.ts';

/** The vector of a chunk; all of one document are dense, or all are sparse. */
type ChunkVector = TextSpan & { readonly vector: Vector };

/** A part that was made: one vector of a text, one of each of its chunks, or an artifact. */
type MadePart =
  | { readonly kind: 'vector'; readonly vector: Vector; readonly hash: Uint8Array }
  | { readonly kind: 'vectors'; readonly vectors: readonly ChunkVector[]; readonly hash: Uint8Array }
  | {
      readonly kind: 'artifact';
      readonly body: (partId: number) => Uint8Array<ArrayBuffer>;
      /** Of a list of edges: those that a request has declared stay in it. */
      readonly keepsDeclared?: boolean;
    };

/** The outcome for a document's part. */
export type PartOutcome =
  | { readonly kind: 'kept' }
  | MadePart
  /** There is nothing to embed: a part that is there goes. */
  | { readonly kind: 'none' }
  /** `isFinal`: it fails again until the document changes. A part that is there is of an earlier text, and goes. */
  | { readonly kind: 'failed'; readonly error: ServiceError; readonly isFinal: boolean };

export function isMade(outcome: PartOutcome): outcome is MadePart {
  return outcome.kind === 'vector' || outcome.kind === 'vectors' || outcome.kind === 'artifact';
}

/** The body of a part row. */
export function madeBody(partId: number, made: MadePart): Uint8Array<ArrayBuffer> {
  if (made.kind === 'artifact') return made.body(partId);
  if (made.kind === 'vectors') {
    const { vectors, hash } = made;
    if (vectors.every(isDense)) return denseSetBody(partId, vectors, hash);
    return sparseSetBody(partId, vectors.filter(isSparse), hash);
  }
  const { vector, hash } = made;
  return vector instanceof Float32Array ? denseBody(partId, vector, hash) : sparseBody(partId, vector, hash);
}

function isDense(chunk: ChunkVector): chunk is SpanVector {
  return chunk.vector instanceof Float32Array;
}

function isSparse(chunk: ChunkVector): chunk is SpanSparseVector {
  return !isDense(chunk);
}
