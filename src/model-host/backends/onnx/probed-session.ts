import { availableParallelism } from 'node:os';
import { systemClock } from '../../../lib/clock.ts';
import { OnnxSession } from './onnx-session.ts';

interface ProbedSession {
  readonly session: OnnxSession;
  readonly threads: number;
}

/** More threads must be faster by this much to be worth taking from others. */
const worthWhile = 0.9;
const triesEach = 2;

/**
 * Opens a model with the count of threads that reads `sample` fastest here: all processors or half of them, which is
 * what there is where two share a core. A count that was asked for is taken as it is.
 */
export async function openProbed(
  path: string,
  threads: number,
  sample: (session: OnnxSession) => Promise<unknown>,
): Promise<ProbedSession> {
  const all = availableParallelism();
  if (threads > 0 || all === 1) return { session: await OnnxSession.open(path, threads || 1), threads: threads || 1 };
  const half = Math.ceil(all / 2);
  const few = await OnnxSession.open(path, half);
  const fewMs = await timeOf(few, sample);
  const many = await OnnxSession.open(path, all);
  const manyMs = await timeOf(many, sample);
  const more = manyMs < fewMs * worthWhile;
  await (more ? few : many).close();
  return more ? { session: many, threads: all } : { session: few, threads: half };
}

/** The best of some runs, in milliseconds, after one that warms up. */
async function timeOf(session: OnnxSession, sample: (session: OnnxSession) => Promise<unknown>): Promise<number> {
  await sample(session);
  let best = Number.POSITIVE_INFINITY;
  for (let at = 0; at < triesEach; at += 1) {
    const startMs = systemClock.monotonicMs();
    await sample(session);
    best = Math.min(best, systemClock.monotonicMs() - startMs);
  }
  return best;
}
