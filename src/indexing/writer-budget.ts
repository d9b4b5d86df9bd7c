/** An index that writes: rows that no commit shows take megabytes, until they are committed. */
export interface WriterHolder {
  /** Shows what was applied, then gives the writer back, when nothing else is to be done. */
  releaseWriterSoon(): void;
}

/** Bounds how many indexes hold a writer: the one written longest ago is asked to give its own back. */
export class WriterBudget {
  readonly #writersMax: number;
  /** In order of last use. */
  readonly #holders = new Set<WriterHolder>();

  constructor(writersMax: number) {
    this.#writersMax = writersMax;
  }

  /** The holder writes. */
  use(holder: WriterHolder): void {
    this.#holders.delete(holder);
    this.#holders.add(holder);
    if (this.#holders.size <= this.#writersMax) return;
    const [oldest] = this.#holders;
    if (!oldest) return;
    this.#holders.delete(oldest);
    oldest.releaseWriterSoon();
  }

  /** The holder has given its writer back. */
  released(holder: WriterHolder): void {
    this.#holders.delete(holder);
  }
}
