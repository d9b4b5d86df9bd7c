import { permitRetryAfterMs } from '../../inference/admission.ts';

/** The permits for work with models, as they are now. */
export interface Permits {
  /** Requests that may be worked on at one time; 0 sets no bound. */
  readonly concurrentMax: number;
  readonly taken: number;
}

/**
 * Headers that clients of the OpenAI interface read beside an answer. Requests are bounded at one time, not in a
 * minute: a limit is the number of permits, and what remains is free when the headers are written.
 */
export function addInferenceHeaders(headers: Headers, durationMs: number, permits: Permits | undefined): void {
  headers.set('openai-processing-ms', String(Math.round(durationMs)));
  if (permits === undefined || permits.concurrentMax === 0) return;
  const remaining = Math.max(0, permits.concurrentMax - permits.taken);
  headers.set('x-ratelimit-limit-requests', String(permits.concurrentMax));
  headers.set('x-ratelimit-remaining-requests', String(remaining));
  headers.set('x-ratelimit-reset-requests', remaining > 0 ? '0s' : `${permitRetryAfterMs}ms`);
}
