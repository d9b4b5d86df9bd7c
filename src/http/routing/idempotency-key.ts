import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** Of a route that writes documents. */
export const idempotentWrite = {
  'Idempotency-Key':
    'With it the request takes effect once, however often it is sent: a repetition gets the first ' +
    'answer, and another body under the same key 409 "idempotency_conflict". Only what was committed is kept, for 24 hours, ' +
    'and the last 100,000 of a range.',
};

/** The header's value; undefined without it. Fails with `invalid_request` when it cannot be a key. */
export function idempotencyKeyOf(request: Request): string | undefined {
  const key = request.headers.get('idempotency-key');
  if (key === null) return undefined;
  if (key.length > limits.idempotencyKeyCharsMax || !/^[\x21-\x7e]+$/.test(key)) {
    const message = `the header "Idempotency-Key" must have 1 to ${limits.idempotencyKeyCharsMax} visible ASCII characters`;
    throw new ServiceError('invalid_request', message);
  }
  return key;
}
