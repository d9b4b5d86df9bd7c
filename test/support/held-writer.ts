import { startWriterThread, type WriterThread } from '../../src/storage/writer/writer-thread.ts';

/** A writer thread whose messages can be kept from the main thread: what it commits then is in the files, and nobody is told. */
export class HeldWriter implements WriterThread {
  readonly worker: Worker;
  readonly failure: Promise<never>;
  #held: (() => void)[] | undefined;

  constructor() {
    const { worker, failure } = startWriterThread();
    this.worker = worker;
    this.failure = failure;
    Object.defineProperty(worker, 'onmessage', {
      set: (listener: (message: MessageEvent) => void) => {
        worker.addEventListener('message', (message) => {
          if (this.#held) this.#held.push(() => listener(message));
          else listener(message);
        });
      },
    });
  }

  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const deliver of held) deliver();
  }
}
