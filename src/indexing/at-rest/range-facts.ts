/** One index of a range, as far as it can be told without opening it. */
export interface IndexFacts {
  name: string;
  /**
   * `live`: it follows the range, or held all of it when the range was closed. `behind`: the rest is replayed, when the
   * range is open. `building`: nearly all of it is built from the documents.
   */
  state: 'live' | 'opening' | 'behind' | 'building' | 'failed';
  /** Sequences that it has yet to show; of a closed range, that its next opening has to replay. */
  lag: number;
}

/**
 * The facts of a range for listings, topology and metrics. Nothing writes to a range that is closed, so what was taken when
 * it closed stays true until it is opened again.
 */
export interface RangeFacts {
  /** Last committed sequence. */
  head: number;
  documents: number;
  /** Of the documents' bodies and vectors. */
  bytes: number;
  /** Of all files: documents with their log, and indexes. */
  diskBytes: number;
  /** Least TTL base, milliseconds since 1970; null when no document has one, absent when nobody looked. */
  oldestTtlBaseMs?: number | null;
  indexes: IndexFacts[];
}

/** Facts of a range that was just created. */
export function factsOfEmptyRange(firstSequence: number, diskBytes: number, indexNames: string[]): RangeFacts {
  const indexes = indexNames.map((name): IndexFacts => ({ name, state: 'live', lag: 0 }));
  return { head: firstSequence - 1, documents: 0, bytes: 0, diskBytes, oldestTtlBaseMs: null, indexes };
}
