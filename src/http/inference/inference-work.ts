import { limits } from '../../config/limits.ts';
import type { Inference } from '../../inference/inference.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Reply } from '../reply.ts';

/** An answer with what it took. */
export interface Worked {
  readonly answer: Reply | object;
  readonly items: number;
  readonly tokens: number;
}

interface Working {
  readonly request: Request;
  addTiming(stage: string, durationMs: number): void;
}

/** Does a request's work under a permit, times it, and counts it once it is done. */
export async function underPermit(
  { admission, clock, record }: Inference,
  operation: string,
  context: Working,
  work: () => Promise<Worked>,
): Promise<Reply | object> {
  return await admission.run(async () => {
    const startMs = clock.monotonicMs();
    const { answer, items, tokens } = await work().catch((error: unknown) => {
      throw context.request.signal.aborted ? clientLeft() : error;
    });
    const durationMs = clock.monotonicMs() - startMs;
    context.addTiming('inference', durationMs);
    record({ operation, items, tokens, durationMs });
    return answer;
  });
}

/** Nobody reads this; it keeps a client that left from looking like a fault of ours. */
export function clientLeft(): ServiceError {
  return new ServiceError('unavailable', 'the client left before its answer was there');
}

/** Refuses more texts, or longer ones, than a request may have. A text may be given as tokens. */
export function checkTexts(texts: readonly { readonly length: number }[]): void {
  if (texts.length > limits.inferenceTextsMax) {
    const most = limits.inferenceTextsMax;
    throw new ServiceError('limit_exceeded', `the request has ${texts.length} texts; it may have ${most}`);
  }
  const long = texts.find(({ length }) => length > limits.inferenceTextCharsMax);
  if (long === undefined) return;
  const most = limits.inferenceTextCharsMax;
  throw new ServiceError('limit_exceeded', `a text has ${long.length} characters or tokens; it may have ${most}`);
}

/** Where an over-long text is cut; undefined where it is to be refused. */
export function truncation(word: boolean | 'start' | 'end' | undefined): 'start' | 'end' | undefined {
  if (word === true) return 'end';
  return word === false ? undefined : word;
}
