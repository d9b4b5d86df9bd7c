/** Shared by many or held by one; both in the order in which they ask. */
export class ReadWriteLock {
  readonly #shared = new Set<Promise<void>>();
  #exclusive: Promise<unknown> = Promise.resolve();

  /** Resolves when all that asked to exclude before have ended. */
  async share(): Promise<Disposable> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#shared.add(promise);
    const end = () => {
      this.#shared.delete(promise);
      resolve();
    };
    await this.#exclusive;
    return { [Symbol.dispose]: end };
  }

  /** Resolves when every earlier holder has ended. Later requests wait until this one ends. */
  async exclude(): Promise<Disposable> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const before = Promise.all([this.#exclusive, ...this.#shared]);
    this.#exclusive = before.then(() => promise);
    await before;
    return { [Symbol.dispose]: resolve };
  }
}
