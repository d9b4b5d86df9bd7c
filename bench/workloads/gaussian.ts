import type { Xorshift32 } from './xorshift32.ts';

/** Normally distributed numbers (mean 0, deviation 1) by the method of Box and Muller. */
export class Gaussian {
  readonly #random: Xorshift32;
  #spare: number | undefined;

  constructor(random: Xorshift32) {
    this.#random = random;
  }

  next(): number {
    if (this.#spare !== undefined) {
      const value = this.#spare;
      this.#spare = undefined;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - this.#random.unit()));
    const angle = 2 * Math.PI * this.#random.unit();
    this.#spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }
}
