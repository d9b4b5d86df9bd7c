import type { ErrorCode } from '../error-codes.ts';
import type { ServiceError } from '../service-error.ts';

/**
 * The error body of the inference plane. The sentence in `error` begins with the code, since it is all that many clients
 * show; `reason` is the class of the error.
 */
export interface InferenceErrorBody {
  error: string;
  message: string;
  reason: string;
  retryable: boolean;
  /** Milliseconds; 0 where a retry does not help. */
  retry_after_ms: number;
}

/** The error body of the OpenAI interface, with the members of ours beside it. */
export interface OpenAiErrorBody extends Omit<InferenceErrorBody, 'error'> {
  error: { message: string; type: string; param: null; code: string };
}

const timeouts: readonly ErrorCode[] = ['request_timeout', 'deadline_exceeded', 'query_timeout'];

/** The class of an error, coarser than its code. */
export function inferenceReason({ code, status }: ServiceError): string {
  if (timeouts.includes(code)) return 'timeout';
  if (code === 'media_too_large') return 'media_budget';
  if (status === 400 || status === 413 || status === 415) return 'invalid_input';
  if (status === 401 || status === 403) return 'unauthorized';
  return code;
}

/** The shape that the OpenAI SDKs read an error from, in a body and in a stream. */
export function openAiError(error: ServiceError): OpenAiErrorBody['error'] {
  const message = `${error.code}: ${error.message}`;
  return { message, type: openAiType(error), param: null, code: error.code };
}

/** The class of an error in the words of the OpenAI interface. */
function openAiType({ status }: ServiceError): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

/** Whether the path is one of the alias `/v1`, whose errors have the shape of the OpenAI interface. */
export function isOpenAiPath(path: string): boolean {
  return /^\/+v1(?:\/|$)/.test(path);
}

/** Routes outside of the prefixes, which clients of other servers ask for. */
const bareRoutes = /^\/(?:rerank|v2\/rerank|embed|info|tokenize|detokenize|api\/.*)$/;

/** Whether the path belongs to the inference plane, whose errors have a body of their own. */
export function isInferencePath(path: string): boolean {
  return /^\/+(?:(?:ai|ml)\/+)?v1(?:\/|$)/.test(path) || bareRoutes.test(path);
}
