import type { LimitOptions } from '../../config/limits.ts';
import type { Clock } from '../../lib/clock.ts';

interface ClockGuardDeps {
  clock: Clock;
  limits: Pick<LimitOptions, 'clockJumpMs' | 'clockJumpPauseMs'>;
  /** The wall time noted last before this start, milliseconds since 1970; 0 for none. */
  notedMs: number;
  /** Told of a jump, positive where it went forward. */
  onJump(jumpMs: number): void;
}

/**
 * Stands between the wall clock and what deletes by it: a wrong clock must not delete. Whoever asks compares how far the wall
 * clock and the monotonic clock have come since somebody asked before.
 */
export class ClockGuard {
  readonly #deps: ClockGuardDeps;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  #lastWallMs: number;
  #lastMonotonicMs: number;

  constructor(deps: ClockGuardDeps) {
    this.#deps = deps;
    this.#lastWallMs = deps.clock.nowMs();
    this.#lastMonotonicMs = deps.clock.monotonicMs();
    // Over a restart only the noted time can tell; a long rest looks like a jump too, and then costs ten minutes.
    if (deps.notedMs !== 0) this.#judge(this.#lastWallMs - deps.notedMs);
  }

  /** The wall time, milliseconds since 1970; undefined for a while after it has jumped. */
  trustedMs(): number | undefined {
    const { clock } = this.#deps;
    const wallMs = clock.nowMs();
    const monotonicMs = clock.monotonicMs();
    this.#judge(wallMs - this.#lastWallMs - (monotonicMs - this.#lastMonotonicMs));
    this.#lastWallMs = wallMs;
    this.#lastMonotonicMs = monotonicMs;
    return monotonicMs < this.#pausedUntilMs ? undefined : wallMs;
  }

  #judge(jumpMs: number): void {
    const { clock, limits, onJump } = this.#deps;
    if (Math.abs(jumpMs) <= limits.clockJumpMs) return;
    this.#pausedUntilMs = clock.monotonicMs() + limits.clockJumpPauseMs;
    onJump(jumpMs);
  }
}
