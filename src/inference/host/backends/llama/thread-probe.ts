import type { Clock } from '../../../../lib/clock.ts';
import type { NativeContext } from './binding.ts';
import type { ThreadCounts } from './decode-loop.ts';

export interface ProbeParts {
  readonly context: NativeContext;
  readonly sequences: number;
  /** Threads that this machine has room for. */
  readonly cores: number;
  readonly clock: Clock;
}

/** Time for each of the three shapes of work, in milliseconds. */
const shapeBudgetMs = 90;
const repeatsMax = 6;
const prefillTokens = 32;
/** More threads have to be this much faster to be worth it: others want the cores too. */
const gainMin = 1.05;

/**
 * Tries thread counts on the loaded model: one token, one of each sequence, a piece of a prompt. Counting cores does not
 * do: decoding waits for memory, and on shared cores a thread more can make it several times slower.
 */
export async function probeThreads({ context, sequences, cores, clock }: ProbeParts): Promise<ThreadCounts> {
  const evaluate = async (threads: number, shape: readonly number[]): Promise<number> => {
    const total = shape.reduce((sum, tokens) => sum + tokens, 0);
    context.setThreads(threads);
    context.initBatch(total);
    for (const [sequence, tokens] of shape.entries()) {
      context.addToBatch(sequence, 0, new Uint32Array(tokens), Uint32Array.of(tokens - 1));
    }
    const startMs = clock.monotonicMs();
    await context.decodeBatch();
    const tookMs = clock.monotonicMs() - startMs;
    for (const sequence of shape.keys()) context.removeTokenCellsFromSequence(sequence, 0, -1);
    return tookMs;
  };
  await evaluate(cores, [1]);
  const choose = (shape: readonly number[]) => fastest(cores, clock, (threads) => evaluate(threads, shape));
  const decode = await choose([1]);
  const parallel = sequences === 1 ? decode : await choose(Array.from({ length: sequences }, () => 1));
  return { decode, parallel, prefill: await choose([prefillTokens]) };
}

/** The count with the best time, from all cores down by halves for as long as the budget lasts. */
async function fastest(cores: number, clock: Clock, measure: (threads: number) => Promise<number>): Promise<number> {
  const counts: number[] = [];
  for (let count = cores; count >= 1; count = Math.floor(count / 2)) counts.push(count);
  const shareMs = shapeBudgetMs / counts.length;
  let best = { count: cores, ms: Number.POSITIVE_INFINITY };
  const startMs = clock.monotonicMs();
  for (const count of counts) {
    const fromMs = clock.monotonicMs();
    if (fromMs - startMs >= shapeBudgetMs) break;
    let ms = Number.POSITIVE_INFINITY;
    for (let turn = 0; turn < repeatsMax && (turn === 0 || clock.monotonicMs() - fromMs < shareMs); turn += 1) {
      ms = Math.min(ms, await measure(count));
    }
    if (ms < best.ms * gainMin) best = { count, ms: Math.min(ms, best.ms) };
  }
  return best.count;
}
