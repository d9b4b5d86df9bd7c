import type { RangeIndex } from '../range-index.ts';
import type { WriterBudget, WriterHolder } from '../writer-budget.ts';

/** Whether an index holds its writer, and whether it is to give it back. */
export class HeldWriter implements WriterHolder {
  readonly #budget: WriterBudget | undefined;
  readonly #onWanted: () => void;
  #isHeld = true;
  #isWanted = false;

  /** Without a budget, a writer is kept until it is idle. `onWanted`: others need it. */
  constructor(budget: WriterBudget | undefined, onWanted: () => void) {
    this.#budget = budget;
    this.#onWanted = onWanted;
  }

  /** False once it was given back, until the next row. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Others need the writer. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  releaseWriterSoon(): void {
    this.#isWanted = true;
    this.#onWanted();
  }

  /** The index was opened: work that was put off may wait for it to rest. */
  opened(): void {
    this.#isHeld = true;
  }

  /** The index writes. */
  use(): void {
    this.#isHeld = true;
    this.#isWanted = false;
    this.#budget?.use(this);
  }

  /** Gives the writer back, and has the index do what it put off until it rests. */
  async release(index: RangeIndex | undefined): Promise<void> {
    this.#isWanted = false;
    if (!this.#isHeld) return;
    await index?.releaseWriter();
    this.#isHeld = false;
    this.closed();
  }

  /** The index was closed, with its writer. */
  closed(): void {
    this.#budget?.released(this);
  }
}
