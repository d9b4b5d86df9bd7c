import { denseBody } from '../lib/parts/dense-part.ts';
import { denseSetBody, type SpanVector } from '../lib/parts/dense-set-part.ts';
import { sparseBody } from '../lib/parts/sparse-part.ts';
import type { ServiceError } from '../protocol/service-error.ts';
import type { Vector } from './embed-texts.ts';

/** A part that was made: one vector of a text, one of each of its chunks, or an artifact. */
type MadePart =
  | { readonly kind: 'vector'; readonly vector: Vector; readonly hash: Uint8Array }
  | { readonly kind: 'vectors'; readonly vectors: readonly SpanVector[]; readonly hash: Uint8Array }
  | { readonly kind: 'artifact'; readonly body: (partId: number) => Uint8Array<ArrayBuffer> };

/** What becomes of a document's part. */
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
  if (made.kind === 'vectors') return denseSetBody(partId, made.vectors, made.hash);
  const { vector, hash } = made;
  return vector instanceof Float32Array ? denseBody(partId, vector, hash) : sparseBody(partId, vector, hash);
}
