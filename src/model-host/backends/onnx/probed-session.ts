import { availableParallelism } from 'node:os';
import { type Clock, systemClock } from '../../../lib/clock.ts';
import { trimNativeHeap } from '../../child/native-heap.ts';
import { OnnxSession } from './onnx-session.ts';

interface ProbedSession {
  readonly session: OnnxSession;
  readonly threads: number;
}

/** The machine that counts are tried on; a test brings its own. */
interface Machine {
  readonly open: typeof OnnxSession.open;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Its processors. */
  readonly all: number;
}

/** More threads must be faster by this much to be worth taking from others. */
const worthWhile = 0.9;
const triesEach = 2;

/**
 * Opens a model with the count of threads that reads `sample` fastest here: all processors or half of them, which is
 * what there is where two share a core. A count that was asked for is taken as it is. One session is open at a time:
 * two would take twice the memory.
 */
export async function openProbed(
  path: string,
  threads: number,
  sample: (session: OnnxSession) => Promise<unknown>,
  { open, clock, all }: Machine = { open: OnnxSession.open, clock: systemClock, all: availableParallelism() },
): Promise<ProbedSession> {
  if (threads > 0 || all === 1) return { session: await open(path, threads || 1), threads: threads || 1 };
  const half = Math.ceil(all / 2);
  const few = await open(path, half);
  const fewMs = await timeOf(few, sample, clock);
  await close(few);
  const many = await open(path, all);
  if ((await timeOf(many, sample, clock)) < fewMs * worthWhile) return { session: many, threads: all };
  await close(many);
  return { session: await open(path, half), threads: half };
}

async function close(session: OnnxSession): Promise<void> {
  await session.close();
  trimNativeHeap();
}

/** The best of some runs, in milliseconds, after one that warms up. */
async function timeOf(
  session: OnnxSession,
  sample: (session: OnnxSession) => Promise<unknown>,
  clock: Pick<Clock, 'monotonicMs'>,
): Promise<number> {
  await sample(session);
  let best = Number.POSITIVE_INFINITY;
  for (let at = 0; at < triesEach; at += 1) {
    const startMs = clock.monotonicMs();
    await sample(session);
    best = Math.min(best, clock.monotonicMs() - startMs);
  }
  return best;
}
