import { AssertionError } from '../../lib/assert.ts';
import {
  type InferenceErrorBody,
  inferenceReason,
  type OpenAiErrorBody,
  openAiError,
} from '../../protocol/inference/error-body.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { Reply } from './reply.ts';

/** The error body of the database plane; `error` repeats `message` for clients that read only that. */
interface ErrorBody {
  code: string;
  error: string;
  message: string;
  retryable: boolean;
  /** Milliseconds, at least 1; only with a retryable error. */
  retry_after_ms?: number;
}

/** Whatever was thrown, as the error that a caller may see. Internal errors are not described. */
export function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  const message = 'internal error; the log of the server has the details under the request id';
  return new ServiceError('internal', message, { cause: thrown });
}

/** True for a bug: an assertion that failed, or anything thrown that nobody gave a code. */
export function isFault(thrown: unknown): boolean {
  return thrown instanceof AssertionError || !(thrown instanceof ServiceError) || thrown.code === 'internal';
}

export function errorBody(error: ServiceError): ErrorBody {
  const body: ErrorBody = {
    code: error.code,
    error: error.message,
    message: error.message,
    retryable: error.retryable,
  };
  if (error.retryAfterMs !== undefined) body.retry_after_ms = Math.max(1, Math.round(error.retryAfterMs));
  return body;
}

function inferenceErrorBody(error: ServiceError): InferenceErrorBody {
  return {
    error: `${error.code}: ${error.message}`,
    message: error.message,
    reason: inferenceReason(error),
    retryable: error.retryable,
    retry_after_ms: errorBody(error).retry_after_ms ?? 0,
  };
}

/**
 * The same in the shape of the inference plane. Clients of the OpenAI interface repeat what answers 409 or 5xx unless
 * they are told not to.
 */
export function inferenceErrorReply(error: ServiceError, headers: Readonly<Record<string, string>> = {}): Reply {
  return inferenceReply(error, inferenceErrorBody(error), headers);
}

/** The same below `/v1`: the clients of the OpenAI interface find message, type and code where they look for them. */
export function openAiErrorReply(error: ServiceError, headers: Readonly<Record<string, string>> = {}): Reply {
  return inferenceReply(error, { ...inferenceErrorBody(error), error: openAiError(error) }, headers);
}

function inferenceReply(
  error: ServiceError,
  body: InferenceErrorBody | OpenAiErrorBody,
  headers: Readonly<Record<string, string>>,
): Reply {
  const reply = errorReply(error, { ...headers, 'x-should-retry': String(error.retryable) });
  const status = error.code === 'deadline_exceeded' ? 504 : reply.status;
  return new Reply(status, JSON.stringify(body), reply.headers);
}

/** The error as an answer, with `Retry-After` (seconds) and `retry-after-ms` where a retry may help. */
export function errorReply(error: ServiceError, headers: Readonly<Record<string, string>> = {}): Reply {
  const body = errorBody(error);
  const all: Record<string, string> = { ...headers };
  if (body.retry_after_ms !== undefined) {
    all['retry-after'] = String(Math.ceil(body.retry_after_ms / 1_000));
    all['retry-after-ms'] = String(body.retry_after_ms);
  }
  // The rest of the body would come on a connection that nobody reads.
  if (error.code === 'request_timeout') all.connection = 'close';
  if (error.code === 'unauthorized')
    all['www-authenticate'] = 'Basic realm="sundew", charset="UTF-8", Bearer realm="sundew"';
  return new Reply(error.status, JSON.stringify(body), all);
}
