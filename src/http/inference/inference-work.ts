import type { Inference } from '../../inference/inference.ts';
import type { Reply } from '../reply.ts';

/** An answer with what it took. */
export interface Worked {
  readonly answer: Reply | object;
  readonly items: number;
  readonly tokens: number;
}

interface Timed {
  addTiming(stage: string, durationMs: number): void;
}

/** Does a request's work under a permit, times it, and counts it once it is done. */
export async function underPermit(
  { admission, clock, record }: Inference,
  operation: string,
  context: Timed,
  work: () => Promise<Worked>,
): Promise<Reply | object> {
  return await admission.run(async () => {
    const startMs = clock.monotonicMs();
    const { answer, items, tokens } = await work();
    const durationMs = clock.monotonicMs() - startMs;
    context.addTiming('inference', durationMs);
    record({ operation, items, tokens, durationMs });
    return answer;
  });
}
