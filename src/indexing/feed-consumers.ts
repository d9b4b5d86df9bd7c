/** Something that reads the change feed of a range and may have to start again where it stands. */
interface FeedConsumer {
  /** It needs every change after this sequence, tombstones included. */
  neededAfter(): number;
}

/** Keeps the changes after a sequence in the feed; what came before it may go. */
export interface FeedPin extends Disposable {
  /** Everything up to `sequence` was taken over. */
  advance(sequence: number): void;
}

/** The consumers of a range's change feed, which is purged below the lowest of them. */
export class FeedConsumers {
  readonly #consumers = new Set<FeedConsumer>();

  /** Returns what takes the consumer out again. */
  add(consumer: FeedConsumer): () => void {
    this.#consumers.add(consumer);
    return () => this.#consumers.delete(consumer);
  }

  /** For a reader other than an index, such as a copy of the range. It holds a lease of the range as long as its pin. */
  pin(afterSequence: number): FeedPin {
    let needed = afterSequence;
    const remove = this.add({ neededAfter: () => needed });
    return {
      advance: (sequence) => {
        needed = Math.max(needed, sequence);
      },
      [Symbol.dispose]: () => remove(),
    };
  }

  /** Every consumer has taken over the changes up to here, of a feed that ends at `head`. */
  purgeableThrough(head: number): number {
    let lowest = head;
    for (const consumer of this.#consumers) lowest = Math.min(lowest, consumer.neededAfter());
    return lowest;
  }
}
