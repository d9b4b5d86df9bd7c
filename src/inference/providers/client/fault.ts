import type { ErrorCode } from '../../../protocol/error-codes.ts';
import { ServiceError } from '../../../protocol/service-error.ts';

/** Codes of faults that lie in one input: the provider takes others. */
const itemCodes: readonly ErrorCode[] = [
  'invalid_request',
  'context_length_exceeded',
  'limit_exceeded',
  'unsupported_response_format',
  'invalid_media',
  'media_too_large',
  'image_not_found',
  'media_fetch_failed',
  'inference_failed',
];

/**
 * Tells whose fault an error is. One of the `item` counts against the item and leaves the others alone. One of the `provider`
 * (it is down, overloaded, misconfigured, or refuses the key) concerns every request to it: wait, and try the same again.
 */
export function faultOf(error: unknown): 'item' | 'provider' {
  return error instanceof ServiceError && itemCodes.includes(error.code) ? 'item' : 'provider';
}
