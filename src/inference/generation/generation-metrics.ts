import type { Clock } from '../../lib/clock.ts';
import type { GenerateResult } from '../../model-host/operations/generate.ts';
import type { Metrics } from '../../observability/metrics.ts';
import type { FinishReason } from '../../protocol/inference/finish-reasons.ts';

/** The events of one generation. */
export interface GenerationWatch {
  /** A piece of a streamed output has come. */
  token(): void;
  finished(result: GenerateResult, finish: FinishReason): void;
  /** `gone` when nobody waited for it any more. */
  failed(gone: boolean): void;
}

/** Counts and times generations by the name of their model, which only what is installed has. */
export class GenerationMetrics {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #inFlight = new Map<string, number>();

  constructor(metrics: Metrics, clock: Clock, parallelSequences: number) {
    this.#metrics = metrics;
    this.#clock = clock;
    metrics.onCollect(() => {
      for (const [model, count] of this.#inFlight) {
        metrics.set('generationsRunning', [model], Math.min(count, parallelSequences));
        metrics.set('generationsWaiting', [model], Math.max(0, count - parallelSequences));
      }
    });
  }

  begin(model: string): GenerationWatch {
    const startedMs = this.#clock.monotonicMs();
    let firstMs: number | undefined;
    this.#add(model, 1);
    return {
      token: () => {
        if (firstMs !== undefined) return;
        firstMs = this.#clock.monotonicMs();
        this.#metrics.observe('firstToken', [model], (firstMs - startedMs) / 1_000);
      },
      finished: (result, finish) => {
        const nowMs = this.#clock.monotonicMs();
        this.#add(model, -1);
        this.#count(model, result, finish);
        this.#metrics.observe('generationDuration', [model], (nowMs - startedMs) / 1_000);
        // Once for each answer: for each token it would cost more than sending it.
        if (firstMs !== undefined && result.completionTokens > 1) {
          this.#metrics.observe('perToken', [model], (nowMs - firstMs) / (result.completionTokens - 1) / 1_000);
        }
      },
      failed: (gone) => {
        this.#add(model, -1);
        this.#metrics.increment('generations', [model, gone ? 'cancelled' : 'error']);
      },
    };
  }

  #count(model: string, result: GenerateResult, finish: FinishReason): void {
    this.#metrics.increment('generations', [model, finish]);
    this.#metrics.increment('promptTokens', [model], result.promptTokens);
    this.#metrics.increment('cachedPromptTokens', [model], result.cachedTokens);
    this.#metrics.increment('generatedTokens', [model], result.completionTokens);
    this.#metrics.observe('prefillDuration', [model], result.prefillMs / 1_000);
    this.#metrics.observe('decodeDuration', [model], result.decodeMs / 1_000);
  }

  #add(model: string, by: number): void {
    this.#inFlight.set(model, (this.#inFlight.get(model) ?? 0) + by);
  }
}
