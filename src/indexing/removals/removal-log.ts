/** Entries that are kept one by one; older ones are joined, which only makes the answer larger. */
const entriesMax = 1_024;

interface Removals {
  sequence: number;
  removals: number;
}

/**
 * Remembers which of a range's newest sequences may have made a document match less: rows that replaced or deleted a
 * stored one. A search at an older sequence counts at most that many documents too many.
 */
export class RemovalLog {
  /** Nothing is known about what came before. */
  readonly #knownAfter: number;
  #entries: Removals[] = [];

  /** `head`: the last sequence of the range as the log begins. */
  constructor(head: number) {
    this.#knownAfter = head;
  }

  /** A write up to `sequence` replaced or deleted `removals` rows. */
  note(sequence: number, removals: number): void {
    if (removals === 0) return;
    this.#entries.push({ sequence, removals });
    if (this.#entries.length <= entriesMax) return;
    const joined: Removals[] = [];
    for (let at = 0; at < this.#entries.length; at += 2) {
      const [left, right] = [this.#entries[at], this.#entries[at + 1]];
      if (left && right) joined.push({ sequence: right.sequence, removals: left.removals + right.removals });
      else if (left) joined.push(left);
    }
    this.#entries = joined;
  }

  /** Upper bound of the rows that were replaced or deleted after `sequence`. */
  after(sequence: number): number {
    let removals = Math.max(0, this.#knownAfter - sequence);
    for (let at = this.#entries.length - 1; at >= 0; at -= 1) {
      const entry = this.#entries[at];
      if (!entry || entry.sequence <= sequence) break;
      removals += entry.removals;
    }
    return removals;
  }

  /** Every index shows everything up to `sequence`: it will not be asked about what came before. */
  forget(sequence: number): void {
    const kept = this.#entries.findIndex((entry) => entry.sequence > sequence);
    if (kept !== 0) this.#entries = kept < 0 ? [] : this.#entries.slice(kept);
  }
}
