import { isErrorCode } from '../protocol/error-codes.ts';
import { ServiceError, type ServiceErrorOptions } from '../protocol/service-error.ts';

/**
 * An error as it crosses between threads: code, message, members that are texts,
 * details, cause and stack survive, the class as far as known.
 */
export interface TransportedError {
  name: string;
  message: string;
  code?: string;
  stack?: string;
  /** Its other members that are texts, such as the hint for an operator. */
  texts?: Record<string, string>;
  retryAfterMs?: number;
  details?: Record<string, unknown>;
  cause?: TransportedError;
}

/** Causes are followed this deep. */
const causeDepthMax = 4;

export function packError(error: unknown, depth = 0): TransportedError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) };
  const packed: TransportedError = { name: error.name, message: error.message };
  if (error.stack !== undefined) packed.stack = error.stack;
  if ('code' in error && typeof error.code === 'string') packed.code = error.code;
  if (error instanceof ServiceError) {
    if (error.retryAfterMs !== undefined) packed.retryAfterMs = error.retryAfterMs;
    if (error.details !== undefined) packed.details = error.details;
  } else {
    const texts = Object.entries(error).filter(([, value]) => typeof value === 'string');
    if (texts.length > 0) packed.texts = Object.fromEntries(texts);
  }
  if (error.cause !== undefined && depth < causeDepthMax) packed.cause = packError(error.cause, depth + 1);
  return packed;
}

export function unpackError(packed: TransportedError): Error {
  const cause = packed.cause === undefined ? undefined : unpackError(packed.cause);
  const error = revive(packed, cause);
  if (packed.stack !== undefined) error.stack = packed.stack;
  return error;
}

function revive(packed: TransportedError, cause: Error | undefined): Error {
  if (packed.name === 'ServiceError' && isErrorCode(packed.code)) {
    const options: ServiceErrorOptions = { cause };
    if (packed.retryAfterMs !== undefined) options.retryAfterMs = packed.retryAfterMs;
    if (packed.details !== undefined) options.details = packed.details;
    return new ServiceError(packed.code, packed.message, options);
  }
  const error = new Error(packed.message, cause === undefined ? undefined : { cause });
  return Object.assign(error, packed.code === undefined ? {} : { code: packed.code }, packed.texts, {
    name: packed.name,
  });
}
