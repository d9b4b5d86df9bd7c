import { availableParallelism, cpus, loadavg } from 'node:os';
import { type Clock, systemClock } from '../../../../lib/clock.ts';
import type { NativeContext } from './binding.ts';
import { type ShapeThreads, Threads } from './threads.ts';

export interface ProbeParts {
  readonly context: NativeContext;
  readonly sequences: number;
  /** Threads that this machine has room for. */
  readonly cores: number;
  readonly clock: Clock;
}

/** Time for each of the three shapes of work, in milliseconds. */
const shapeBudgetMs = 80;
const repeatsMax = 5;
/** A model that needs longer for one token on one thread gets all cores: what threads cost is small beside that. */
const slowTokenMs = 80;
/** More threads have to be this much faster to be worth it: others want the cores too. */
const gainMin = 1.1;
const prefillTokensMax = 32;

/** Threads as they are set, or as a probe finds them where that is 0. */
export async function threadsFor(context: NativeContext, set: number, sequences: number): Promise<Threads> {
  if (set > 0) return Threads.fixed(set);
  // On a machine that has more to do than cores already, trying several threads takes seconds and answers one.
  const cores = (loadavg()[0] ?? 0) > cpus().length ? 1 : availableParallelism();
  return await probeThreads({ context, sequences, cores, clock: systemClock });
}

/**
 * Tries thread counts on the loaded model: one token, one of each sequence, a piece of a prompt. Counting cores does not
 * do: decoding waits for memory, and on shared cores a thread more can make it several times slower.
 */
export async function probeThreads({ context, sequences, cores, clock }: ProbeParts): Promise<Threads> {
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
  // The first evaluation reads the weights from disk.
  await evaluate(1, [1]);
  const tokenMs = await evaluate(1, [1]);
  if (cores === 1 || tokenMs > slowTokenMs) return Threads.fixed(cores);
  const choose = (shape: readonly number[]) => fastest(cores, clock, (threads) => evaluate(threads, shape));
  const perToken = ({ count, singleMs }: ShapeThreads, tokens: number) => ({ count, singleMs: singleMs / tokens });
  const prefillTokens = Math.max(4, Math.min(prefillTokensMax, Math.floor(shapeBudgetMs / tokenMs)));
  const decode = await choose([1]);
  const parallel = sequences === 1 ? decode : await choose(Array.from({ length: sequences }, () => 1));
  const prefill = await choose([prefillTokens]);
  return new Threads({ decode, parallel: perToken(parallel, sequences), prefill: perToken(prefill, prefillTokens) });
}

/** The count with the best time, from one thread up by doubling for as long as the budget lasts. */
async function fastest(
  cores: number,
  clock: Clock,
  measure: (threads: number) => Promise<number>,
): Promise<ShapeThreads> {
  const counts: number[] = [];
  for (let count = 1; count < cores; count *= 2) counts.push(count);
  counts.push(cores);
  const shareMs = shapeBudgetMs / counts.length;
  let best = { count: 1, ms: Number.POSITIVE_INFINITY };
  let singleMs = 0;
  const startMs = clock.monotonicMs();
  for (const count of counts) {
    const fromMs = clock.monotonicMs();
    if (count > 1 && fromMs - startMs >= shapeBudgetMs) break;
    let ms = Number.POSITIVE_INFINITY;
    for (let turn = 0; turn < repeatsMax && (turn === 0 || clock.monotonicMs() - fromMs < shareMs); turn += 1) {
      ms = Math.min(ms, await measure(count));
    }
    if (count === 1) singleMs = ms;
    if (ms * gainMin < best.ms || count === 1) best = { count, ms };
  }
  return { count: best.count, singleMs };
}
