import type { ErrorCode } from '../protocol/error-codes.ts';

interface ErrorFacts {
  readonly status: number;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly requestId: string | undefined;
  readonly cause?: unknown;
}

/** The error of the database in place of a result, or the reason why it could not be reached. */
export class SundewError extends Error {
  override readonly name = 'SundewError';
  /** Stable; `docs/errors.md` lists them. `connection_failed`: there was no answer, or it was cut off or a proxy's own. */
  readonly code: ErrorCode | 'connection_failed';
  /** Of HTTP; 0 where there was no answer. */
  readonly status: number;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** How long to wait before that, in milliseconds, as far as the server says. */
  readonly retryAfterMs: number | undefined;
  /** The id under which the server's log has the request. */
  readonly requestId: string | undefined;

  constructor(code: SundewError['code'], message: string, { cause, ...facts }: ErrorFacts) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = facts.status;
    this.retryable = facts.retryable;
    this.retryAfterMs = facts.retryAfterMs;
    this.requestId = facts.requestId;
  }
}

export function connectionFailed(cause: unknown): SundewError {
  // Node says "fetch failed", and why in the cause.
  const first = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const reason = first instanceof Error ? first.message || first.name : String(first);
  const facts = { status: 0, retryable: true, retryAfterMs: undefined, requestId: undefined, cause };
  return new SundewError('connection_failed', `the database could not be reached: ${reason}`, facts);
}

/** The error of a request that is not sent, because the server could not understand it. */
export function requestRefused(code: ErrorCode, message: string): SundewError {
  return new SundewError(code, message, { status: 0, retryable: false, retryAfterMs: undefined, requestId: undefined });
}

/** Statuses of a proxy whose server gives no answer at the moment. */
const unanswered = [502, 503, 504];

/** The error of an answer that is not a success. Its body has the shape of either plane, or is not of the server at all. */
export async function errorOf(response: Response): Promise<SundewError> {
  const body = await bodyOf(response);
  const { status, headers } = response;
  const retryAfterMs = numberOf(body.retry_after_ms) ?? numberOf(headers.get('retry-after-ms'));
  const facts = {
    status,
    retryable: body.retryable === true,
    retryAfterMs: retryAfterMs === 0 ? undefined : retryAfterMs,
    requestId: headers.get('x-request-id') ?? undefined,
  };
  const { conflict } = body as { conflict?: { message: string } };
  if (conflict !== undefined)
    return new SundewError('transaction_conflict', conflict.message, { ...facts, retryable: true });
  const said = typeof body.error === 'string' ? body.error : '';
  const message = typeof body.message === 'string' ? body.message : said || `the server answered ${status}`;
  // Below /ai/v1 the code stands in front of the sentence.
  const code = typeof body.code === 'string' ? body.code : /^([a-z_]+): /.exec(said)?.[1];
  if (code !== undefined) return new SundewError(code as ErrorCode, message, facts);
  return unanswered.includes(status)
    ? new SundewError('connection_failed', message, { ...facts, retryable: true })
    : new SundewError('internal', message, facts);
}

/** The error that a stream of events ended with: `{"error": {"message", "code"}}`. */
export function errorOfEvent(data: string): SundewError {
  const { error } = parsedObject(data) as { error?: { message?: string; code?: string } };
  const facts = { status: 200, retryable: false, retryAfterMs: undefined, requestId: undefined };
  return new SundewError((error?.code ?? 'internal') as ErrorCode, error?.message ?? data, facts);
}

async function bodyOf(response: Response): Promise<Record<string, unknown>> {
  return parsedObject(await response.text().catch(() => ''));
}

function parsedObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function numberOf(value: unknown): number | undefined {
  if (value === null || value === undefined || value === '') return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}
