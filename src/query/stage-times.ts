import type { Clock } from '../lib/clock.ts';

/** The stages of a query, by the names that metrics, the log and profiles use. */
type QueryStage = 'plan' | 'embed' | 'search' | 'rerank';

/** Milliseconds of the stages that a query went through. */
export type StageMs = Readonly<Partial<Record<QueryStage, number>>>;

/** Measures the stages of one query, one after another. */
export class StageTimes {
  readonly #clock: Clock;
  readonly #startedMs: number;
  #lastMs: number;
  readonly #ms: Partial<Record<QueryStage, number>> = {};

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
    this.#lastMs = this.#startedMs;
  }

  /** All that was done since the last end belongs to this stage. */
  end(stage: QueryStage): void {
    const nowMs = this.#clock.monotonicMs();
    this.#ms[stage] = (this.#ms[stage] ?? 0) + nowMs - this.#lastMs;
    this.#lastMs = nowMs;
  }

  get stages(): StageMs {
    return this.#ms;
  }

  /** Until the last end. */
  get tookMs(): number {
    return this.#lastMs - this.#startedMs;
  }
}

/** The members `plan_ms`, `search_ms` and so on. */
export function stageMembers(stages: StageMs): Record<string, number> {
  return Object.fromEntries(Object.entries(stages).map(([stage, ms]) => [`${stage}_ms`, ms]));
}
