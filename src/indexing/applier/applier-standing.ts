import { IndexFaultError } from '../../engine/engine-error.ts';

export type ApplierState = 'opening' | 'catching_up' | 'live' | 'failed' | 'closed';

/** Where an applier stands between the files of its index and its range, over all openings of the index. */
export class ApplierStanding {
  state: ApplierState = 'opening';
  /** The index is built from the documents, and not up to the range yet. */
  isRebuilding = false;
  /** It has come up to its range since it was opened. */
  hasBeenLive = false;
  lastError: unknown;
  /** Head of the range when the index was last opened: what it may have shown before. */
  replayTarget: number;
  /** Head of the range before this applier could take any row; until the index has been opened once. */
  #headAtStart: number | undefined;

  /** `isFirst`: nobody has followed the index since its range was opened. Who has may have given it rows until it closed. */
  constructor(head: number, isFirst = true) {
    this.#headAtStart = isFirst ? head : undefined;
    this.replayTarget = head;
  }

  /** `isWiped`: what the files held is removed first. */
  opening(isWiped: boolean): void {
    this.state = 'opening';
    this.hasBeenLive = false;
    if (isWiped) this.isRebuilding = true;
  }

  /**
   * The index was opened at a sequence; the range ends at `head`. A range that lost the end of its log gives those
   * sequences again, to other rows: an index that holds them cannot be used. Error: `index_damaged`.
   */
  opened(openedAtSequence: number, head: number): void {
    const before = this.#headAtStart ?? head;
    this.#headAtStart = undefined;
    if (openedAtSequence > before) {
      const message = `the index holds changes up to ${openedAtSequence}, the range ends at ${before}`;
      throw new IndexFaultError('index_damaged', message);
    }
    this.replayTarget = head;
    if (openedAtSequence === 0) this.isRebuilding = true;
  }

  reachedHead(): void {
    this.state = 'live';
    this.hasBeenLive = true;
    this.isRebuilding = false;
    this.lastError = undefined;
  }

  failed(error: unknown): void {
    this.state = 'failed';
    this.lastError = error;
  }
}
