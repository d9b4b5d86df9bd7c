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

  /** Sequence up to which every row is visible to queries. */
  get published(): number {
    return this.#published;
  }

  /** Whether somebody waits for a sequence up to this one: a commit of it would answer them. */
  isAwaited(sequence: number): boolean {
    return this.#waiters.some((waiter) => waiter.sequence <= sequence);
  }

  /** Resolves when `sequence` is visible; rejects when the wait is given up. */
  waitFor(sequence: number, signal?: AbortSignal): Promise<void> {
    if (sequence <= this.#published) return Promise.resolve();
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { sequence, resolve, reject };
      this.#waiters.push(waiter);
      signal?.addEventListener('abort', () => this.#giveUp(waiter, signal.reason), { once: true });
    });
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

  rejectAll(error: unknown): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
  }

  #giveUp(waiter: Waiter, reason: unknown): void {
    const index = this.#waiters.indexOf(waiter);
    if (index < 0) return;
    this.#waiters.splice(index, 1);
    waiter.reject(reason);
  }
}
