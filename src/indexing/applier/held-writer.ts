import type { RangeIndex } from '../range-index.ts';
import type { WriterBudget, WriterHolder } from '../writer-budget.ts';

/** Whether an index may hold its writer, whether it is to give it back, and whether it rests. */
export class HeldWriter implements WriterHolder {
  readonly #budget: WriterBudget | undefined;
  readonly #onWanted: () => void;
  #isAtRest = false;
  #isWanted = false;

  /** Without a budget, a writer is kept until it is idle. `onWanted`: others need it. */
  constructor(budget: WriterBudget | undefined, onWanted: () => void) {
    this.#budget = budget;
    this.#onWanted = onWanted;
  }

  /** Until the next row there is nothing to give back, and nothing that was put off. */
  get isAtRest(): boolean {
    return this.#isAtRest;
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
    this.#isAtRest = false;
  }

  /** The index writes. */
  use(): void {
    this.#isAtRest = false;
    this.#isWanted = false;
    this.#budget?.use(this);
  }

  /** Gives the writer back because others need it. What the index puts off until it rests waits on. */
  release(): void {
    this.#isWanted = false;
    this.closed();
  }

  /** Gives the writer back, and has the index do what it put off until it rests. */
  async rest(index: RangeIndex | undefined): Promise<void> {
    this.#isWanted = false;
    this.#isAtRest = true;
    await index?.rest();
    this.closed();
  }

  /** The index was closed, with its writer. */
  closed(): void {
    this.#budget?.released(this);
  }
}
