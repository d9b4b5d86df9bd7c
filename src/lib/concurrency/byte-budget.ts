interface Waiting<Holder> {
  readonly holder: Holder;
  readonly bytes: number;
  readonly settle: (isTaken: boolean) => void;
}

/**
 * Bounds the bytes that several holders have in memory together; each counts its own as its member of this name. Whoever alone
 * holds something may have any number: one holder always gets on.
 */
export class ByteBudget<Name extends string> {
  readonly #name: Name;
  readonly #bytesMax: number;
  /** In the order in which they have come. */
  readonly #waiting = new Set<Waiting<Record<Name, number>>>();
  #held = 0;

  constructor(name: Name, bytesMax: number) {
    this.#name = name;
    this.#bytesMax = bytesMax;
  }

  /** Counts bytes of a holder beside those that it has, and returns whether they fit. A newcomer goes behind those who wait. */
  take(holder: Record<Name, number>, bytes: number): boolean {
    const isNext = holder[this.#name] > 0 || this.#waiting.size === 0;
    if (!isNext || !this.#fits(holder, bytes)) return false;
    this.#add(holder, bytes);
    return true;
  }

  /** The same in its turn. Settles with false when `over` settles first; then nothing is taken. */
  wait(holder: Record<Name, number>, bytes: number, over: Promise<void>): Promise<boolean> {
    return new Promise((settle) => {
      const waiting = { holder, bytes, settle };
      this.#waiting.add(waiting);
      void over.then(() => {
        if (!this.#waiting.delete(waiting)) return;
        settle(false);
        this.#wake();
      });
      this.#wake();
    });
  }

  /** Corrects what the holder has to this many bytes, which are there whether they fit or not. */
  settle(holder: Record<Name, number>, bytes: number): void {
    this.#add(holder, bytes - holder[this.#name]);
    this.#wake();
  }

  release(holder: Record<Name, number>): void {
    if (holder[this.#name] > 0) this.settle(holder, 0);
  }

  #fits(holder: Record<Name, number>, bytes: number): boolean {
    return this.#held + bytes <= this.#bytesMax || this.#held === holder[this.#name];
  }

  #add(holder: Record<Name, number>, bytes: number): void {
    holder[this.#name] = (holder[this.#name] + bytes) as Record<Name, number>[Name];
    this.#held += bytes;
  }

  #wake(): void {
    for (const waiting of this.#waiting) {
      if (!this.#fits(waiting.holder, waiting.bytes)) return;
      this.#waiting.delete(waiting);
      this.#add(waiting.holder, waiting.bytes);
      waiting.settle(true);
    }
  }
}
