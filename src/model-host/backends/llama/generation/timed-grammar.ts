import type { OutputGrammar } from '../../../../engine/output-grammar.ts';
import { ServiceError } from '../../../../protocol/service-error.ts';

/** Processor time that the grammar of one output may take: to begin with, and for each of its tokens, in milliseconds. */
export const grammarBudget = { startMs: 2_000, tokenMs: 20 } as const;

/**
 * A grammar with a budget of processor time. It runs on the thread that all outputs of the model share, so that one that
 * is slow to follow has to fail by itself.
 */
export class TimedGrammar {
  readonly #grammar: OutputGrammar;
  readonly #cpuMs: () => number;
  #usedMs = 0;
  #tokens = 0;

  /** `cpuMs` tells the processor time of this thread. Throws what `open` throws. */
  constructor(open: () => OutputGrammar, cpuMs: () => number = threadCpuMs) {
    this.#cpuMs = cpuMs;
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
    const fromMs = this.#cpuMs();
    const result = work();
    this.#usedMs += this.#cpuMs() - fromMs;
    if (this.#usedMs <= grammarBudget.startMs + grammarBudget.tokenMs * this.#tokens) return result;
    throw new ServiceError(
      'unsupported_response_format',
      `the grammar takes more than ${grammarBudget.tokenMs} ms of processor time a token; make it smaller or less ambiguous`,
    );
  }
}

/** Other programs that take the processor do not count. */
function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
