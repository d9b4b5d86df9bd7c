import type { Finished, InferenceCall } from '../../inference/admission.ts';
import type { Inference } from '../../inference/inference.ts';

/** The HTTP side of a request as its work sees it. */
interface Call extends InferenceCall {
  addTiming(stage: string, durationMs: number): void;
}

/** Does a request's work under a permit, and says in the `server-timing` header how long it took. */
export function admitted<T>(
  inference: Pick<Inference, 'admission' | 'clock'>,
  operation: string,
  call: Call,
  work: () => Promise<Finished<T>>,
): Promise<T> {
  return timed(inference, call, () => inference.admission.run(operation, call, work));
}

/** The timing alone, for work that a provider admits. */
export async function timed<T>(
  { clock }: Pick<Inference, 'clock'>,
  call: Pick<Call, 'addTiming'>,
  work: () => Promise<T>,
): Promise<T> {
  const startMs = clock.monotonicMs();
  const answer = await work();
  call.addTiming('inference', clock.monotonicMs() - startMs);
  return answer;
}
