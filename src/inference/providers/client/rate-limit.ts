import type { Clock } from '../../../lib/clock.ts';
import { minuteMs } from '../../../lib/units.ts';

/**
 * A token bucket: `perMinute` units flow in evenly, up to `burst`. A caller that takes more than there is goes into
 * debt and waits until it is paid, so that requests go out in the order in which they came.
 */
export class RateLimit {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #perMs: number;
  readonly #burst: number;
  #level: number;
  #atMs: number;

  constructor(clock: Pick<Clock, 'monotonicMs'>, perMinute: number, burst: number) {
    this.#clock = clock;
    this.#perMs = perMinute / minuteMs;
    this.#burst = burst;
    this.#level = burst;
    this.#atMs = clock.monotonicMs();
  }

  /** Milliseconds to wait before what was taken may be used. More than the bucket holds counts as all that it holds. */
  take(units: number): number {
    this.#fill();
    this.#level -= Math.min(units, this.#burst);
    return Math.max(0, Math.ceil(-this.#level / this.#perMs));
  }

  /** Puts back what was not used. */
  giveBack(units: number): void {
    this.#level = Math.min(this.#burst, this.#level + Math.min(units, this.#burst));
  }

  #fill(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#level = Math.min(this.#burst, this.#level + (nowMs - this.#atMs) * this.#perMs);
    this.#atMs = nowMs;
  }
}
