/** Marsaglia's xorshift32 (shifts 13, 17, 5): the same numbers on every machine for the same seed. */
export class Xorshift32 {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    if (this.#state === 0) throw new RangeError('the seed of xorshift32 must not be 0');
  }

  /** The next 32-bit value, 1 to 2^32 - 1. */
  next(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state;
  }

  /** A number in [0, 1). */
  unit(): number {
    return (this.next() - 1) / 4_294_967_295;
  }

  /** An integer in [0, below). */
  below(bound: number): number {
    return Math.floor(this.unit() * bound);
  }
}
