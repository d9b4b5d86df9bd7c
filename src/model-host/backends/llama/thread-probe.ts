import { availableParallelism, cpus, loadavg } from 'node:os';
import { type Clock, systemClock } from '../../../lib/clock.ts';
import type { Device } from '../../available-backends.ts';
import type { NativeContext } from './binding.ts';
import { type ShapeThreads, Threads } from './threads.ts';

interface ProbeDeps {
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
const slowTokenMs = 40;
/** More threads have to be this much faster to be worth it: others want the cores too. */
const gainMin = 1.1;
const prefillTokensMin = 4;
const prefillTokensMax = 32;

interface ThreadsWanted extends Pick<ProbeDeps, 'context' | 'sequences'> {
  readonly device: Device;
  /** The operator's setting; 0 leaves it to the probe. */
  readonly set: number;
}

/** Threads as they are set, or as a probe finds them where that is 0. */
export async function threadsFor({ context, device, set, sequences }: ThreadsWanted): Promise<Threads> {
  if (device !== 'cpu') {
    // A GPU that cannot do it is found out now, and what its driver compiles is there before the first request.
    for (const shape of [[1], [prefillTokensMax], oneOfEach(sequences)]) await evaluate(context, shape);
    // More threads would only wait for it.
    return Threads.fixed(Math.max(set, 1));
  }
  if (set > 0) return Threads.fixed(set);
  // On a machine that has more to do than cores already, trying several threads takes seconds and answers one.
  const cores = (loadavg()[0] ?? 0) > cpus().length ? 1 : availableParallelism();
  return await probeThreads({ context, sequences, cores, clock: systemClock });
}

/**
 * Tries thread counts on the loaded model: one token, one of each sequence, a piece of a prompt. Counting cores does not
 * do: decoding waits for memory, and on shared cores a thread more can make it several times slower.
 */
export async function probeThreads({ context, sequences, cores, clock }: ProbeDeps): Promise<Threads> {
  const timed = async (threads: number, shape: readonly number[]): Promise<number> => {
    context.setThreads(threads);
    const startMs = clock.monotonicMs();
    await evaluate(context, shape);
    return clock.monotonicMs() - startMs;
  };
  // The first evaluation reads the weights from disk.
  await timed(1, [1]);
  const tokenMs = await timed(1, [1]);
  if (cores === 1) return Threads.fixed(1);
  if (tokenMs > slowTokenMs) {
    const all = { count: cores, singleMs: tokenMs };
    return new Threads({ decode: all, parallel: all, prefill: all });
  }
  const choose = (shape: readonly number[]) => fastest(cores, clock, (threads) => timed(threads, shape));
  const perToken = ({ count, singleMs }: ShapeThreads, tokens: number) => ({ count, singleMs: singleMs / tokens });
  const wanted = Math.floor(shapeBudgetMs / 2 / tokenMs);
  const prefillTokens = Math.max(prefillTokensMin, Math.min(prefillTokensMax, wanted));
  const decode = await choose([1]);
  const prefill = perToken(await choose([prefillTokens]), prefillTokens);
  // Of one sequence a few tokens are a prompt; of several they are arithmetic like one, the best guess where trying takes long.
  if (sequences === 1 || sequences * tokenMs > shapeBudgetMs)
    return new Threads({ decode, prefill, parallel: prefill });
  const parallel = perToken(await choose(oneOfEach(sequences)), sequences);
  return new Threads({ decode, prefill, parallel });
}

/** Evaluates as many tokens of each sequence as the shape says, and forgets them. */
async function evaluate(context: NativeContext, shape: readonly number[]): Promise<void> {
  context.initBatch(shape.reduce((sum, tokens) => sum + tokens, 0));
  for (const [sequence, tokens] of shape.entries()) {
    context.addToBatch(sequence, 0, new Uint32Array(tokens), Uint32Array.of(tokens - 1));
  }
  await context.decodeBatch();
  for (const sequence of shape.keys()) context.removeTokenCellsFromSequence(sequence, 0, -1);
}

function oneOfEach(sequences: number): number[] {
  return Array.from({ length: sequences }, () => 1);
}

/** The count with the best time: one thread, all cores, and what lies between for as long as the budget lasts. */
async function fastest(
  cores: number,
  clock: Clock,
  measure: (threads: number) => Promise<number>,
): Promise<ShapeThreads> {
  const counts = [1, cores];
  for (let count = 2; count < cores; count *= 2) counts.push(count);
  const shareMs = shapeBudgetMs / counts.length;
  const times = new Map<number, number>();
  const startMs = clock.monotonicMs();
  for (const count of counts) {
    const fromMs = clock.monotonicMs();
    if (times.size >= 2 && fromMs - startMs >= shapeBudgetMs) break;
    let ms = Number.POSITIVE_INFINITY;
    for (let turn = 0; turn < repeatsMax && (turn === 0 || clock.monotonicMs() - fromMs < shareMs); turn += 1) {
      ms = Math.min(ms, await measure(count));
    }
    times.set(count, ms);
  }
  const singleMs = times.get(1) ?? Number.POSITIVE_INFINITY;
  const tried = [...times].sort(([a], [b]) => a - b);
  const [count] = tried.reduce((best, next) => (next[1] * gainMin < best[1] ? next : best));
  return { count, singleMs };
}
