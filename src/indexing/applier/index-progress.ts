import { assert } from '../../lib/assert.ts';

interface Waiter {
  sequence: number;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/** How far an index has got, and who waits for it. Sequences only rise within one life of an index. */
export class IndexProgress {
  #published = 0;
  #waiters: Waiter[] = [];
  /** Why nothing will be published any more; undefined while something may. */
  #endedBy: Error | undefined;

  /** Sequence up to which every row is visible to queries. */
  get published(): number {
    return this.#published;
  }

  /** Whether somebody waits for a sequence up to this one: a commit of it would answer them. */
  isAwaited(sequence: number): boolean {
    return this.#waiters.some((waiter) => waiter.sequence <= sequence);
  }

  /** Resolves when `sequence` is visible; rejects when the wait is given up, or the index has ended. */
  async waitFor(sequence: number, signal?: AbortSignal): Promise<void> {
    if (sequence <= this.#published) return;
    signal?.throwIfAborted();
    if (this.#endedBy) throw this.#endedBy;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { sequence, resolve, reject };
    this.#waiters.push(waiter);
    const giveUp = () => this.#giveUp(waiter, signal?.reason);
    signal?.addEventListener('abort', giveUp, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener('abort', giveUp);
    }
  }

  publish(sequence: number): void {
    assert(sequence >= this.#published, 'an index went backwards');
    this.#published = sequence;
    const ready = this.#waiters.filter((waiter) => waiter.sequence <= sequence);
    if (ready.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => waiter.sequence > sequence);
    for (const waiter of ready) waiter.resolve();
  }

  /** A reopened index starts again from what its checkpoint holds. */
  restartAt(sequence: number): void {
    this.#published = sequence;
    this.publish(sequence);
  }

  /** Nothing is published any more. */
  end(error: Error): void {
    this.#endedBy = error;
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }

  #giveUp(waiter: Waiter, reason: unknown): void {
    const index = this.#waiters.indexOf(waiter);
    if (index < 0) return;
    this.#waiters.splice(index, 1);
    waiter.reject(reason);
  }
}
