import type { OutputGrammar } from '../../../engine/output-grammar.ts';
import type { Clock } from '../../../lib/clock.ts';
import { ServiceError } from '../../../protocol/service-error.ts';

/** Time that the grammar of one output may take: at its beginning, and for each of its tokens, in milliseconds. */
export const grammarBudget = { startMs: 2_000, tokenMs: 20 } as const;

/**
 * A grammar with a budget of time: it runs on the thread that all outputs of the model share, so that one that is slow
 * to follow fails by itself.
 */
export class TimedGrammar {
  readonly #grammar: OutputGrammar;
  readonly #clock: Clock;
  #usedMs = 0;
  #tokens = 0;

  /** Throws what `open` throws. */
  constructor(open: () => OutputGrammar, clock: Clock) {
    this.#clock = clock;
    this.#grammar = this.#timed(open);
  }

  accepts(token: number): boolean {
    return this.#timed(() => this.#grammar.accepts(token));
  }

  commit(token: number): void {
    this.#tokens += 1;
    this.#timed(() => this.#grammar.commit(token));
  }

  commitText(text: string): boolean {
    return this.#timed(() => this.#grammar.commitText(text));
  }

  refused(): Uint32Array {
    return this.#timed(() => this.#grammar.refused());
  }

  close(): void {
    this.#grammar.close();
  }

  #timed<T>(work: () => T): T {
    const fromMs = this.#clock.monotonicMs();
    const result = work();
    this.#usedMs += this.#clock.monotonicMs() - fromMs;
    if (this.#usedMs <= grammarBudget.startMs + grammarBudget.tokenMs * this.#tokens) return result;
    throw new ServiceError(
      'unsupported_response_format',
      `the grammar takes more than ${grammarBudget.tokenMs} ms a token; make it smaller or less ambiguous`,
    );
  }
}
