import type { OpenRange } from './open-range.ts';

/** A range kept open for as long as somebody uses it. Release by `using` or `[Symbol.dispose]`. */
export interface RangeLease extends Disposable {
  readonly range: OpenRange;
}

interface Slot {
  opening: Promise<OpenRange>;
  /** Set when it is open. */
  range: OpenRange | undefined;
  leases: number;
  /** Set when the range is to be closed; settles when it is. New leases wait for that and open it again. */
  closed: Promise<void> | undefined;
  onIdle: (() => void) | undefined;
}

/** Ranges are opened when first used; beyond a bound the one unused for longest is closed. */
export class RangePool {
  readonly #openRange: (rangeId: number) => Promise<OpenRange>;
  readonly #openMax: number;
  /** In order of last use. */
  readonly #slots = new Map<number, Slot>();

  constructor(openRange: (rangeId: number) => Promise<OpenRange>, openMax: number) {
    this.#openRange = openRange;
    this.#openMax = openMax;
  }

  /** Ranges that are open now, without keeping them so. */
  openRanges(): OpenRange[] {
    return [...this.#slots.values()].flatMap(({ range, closed }) => (range && !closed ? [range] : []));
  }

  async lease(rangeId: number): Promise<RangeLease> {
    for (let held = this.#slots.get(rangeId); held?.closed; held = this.#slots.get(rangeId)) {
      await held.closed.catch(() => undefined);
    }
    const slot = this.#slot(rangeId);
    slot.leases += 1;
    try {
      const range = await slot.opening;
      slot.range = range;
      return { range, [Symbol.dispose]: () => this.#release(slot) };
    } catch (error) {
      this.#forget(rangeId, slot);
      this.#release(slot);
      throw error;
    }
  }

  /** Waits for the users of a range to finish, then closes it. A range that is not open is left alone. */
  async close(rangeId: number): Promise<void> {
    const slot = this.#slots.get(rangeId);
    if (!slot) return;
    slot.closed ??= this.#close(rangeId, slot);
    await slot.closed;
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#slots.keys()].map((rangeId) => this.close(rangeId)));
  }

  async #close(rangeId: number, slot: Slot): Promise<void> {
    try {
      if (slot.leases > 0) {
        await new Promise<void>((resolve) => {
          slot.onIdle = resolve;
        });
      }
      const range = await slot.opening;
      await range.close();
    } finally {
      this.#forget(rangeId, slot);
    }
  }

  #forget(rangeId: number, slot: Slot): void {
    if (this.#slots.get(rangeId) === slot) this.#slots.delete(rangeId);
  }

  #slot(rangeId: number): Slot {
    const known = this.#slots.get(rangeId);
    if (known) {
      this.#slots.delete(rangeId);
      this.#slots.set(rangeId, known);
      return known;
    }
    const slot: Slot = {
      opening: this.#openRange(rangeId),
      range: undefined,
      leases: 0,
      closed: undefined,
      onIdle: undefined,
    };
    this.#slots.set(rangeId, slot);
    this.#closeUnused();
    return slot;
  }

  #closeUnused(): void {
    let excess = this.#slots.size - this.#openMax;
    for (const [rangeId, slot] of this.#slots) {
      if (excess <= 0) return;
      if (slot.leases > 0 || slot.closed) continue;
      excess -= 1;
      void this.close(rangeId);
    }
  }

  #release(slot: Slot): void {
    slot.leases -= 1;
    if (slot.leases === 0) slot.onIdle?.();
  }
}
