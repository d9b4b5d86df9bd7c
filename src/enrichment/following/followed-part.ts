import type { InferenceCall } from '../../inference/admission.ts';
import type { RangeWrite } from '../../storage/write-request.ts';
import type { PartSource, Source } from '../derive-source.ts';
import type { HeldPart } from './held-part.ts';
import type { PartOutcome } from './part-outcome.ts';

/** A document as it was read. */
export interface DocumentRow {
  readonly ordinal: number;
  readonly key: Uint8Array;
  readonly sequence: number;
  readonly body: Uint8Array;
  /** Artifacts that others are made from, by their part. */
  readonly artifacts?: ReadonlyMap<number, Uint8Array>;
}

/** Sources of documents on their way to a model, each of them once. */
export interface Batch {
  readonly isFull: boolean;
  /** Sources that have to be worked on. */
  readonly sourceCount: number;
  /**
   * `held`: the part that is there, if one is. A promise where there is more to do than to look. Throws a fault of the
   * provider.
   */
  add(row: DocumentRow, source: Source, held: HeldPart | undefined, call: InferenceCall): Promise<void> | undefined;
  /** Makes all parts. Throws a fault of the provider. In the order of the documents. */
  run(call: InferenceCall): Promise<{ row: DocumentRow; outcome: PartOutcome }[]>;
}

/** The work of a follower: it makes of documents the parts of one index or enrichment. */
export interface FollowedPart {
  readonly partId: number;
  readonly source: PartSource;
  /** The fingerprint of what the parts depend on: with another one, every document is looked at again. */
  readonly fingerprint: string;
  /** Of lists of edges: what the writer has to know of their index. */
  readonly graphs?: RangeWrite['graphs'];
  /** Only documents from before the definition are given the part: later ones are written with it. No model is asked for it. */
  readonly ofOlderDocuments?: boolean;
  /** Makes batches that share what was made last. */
  batches(): () => Batch;
}
