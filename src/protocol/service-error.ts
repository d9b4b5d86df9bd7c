import { type ErrorCode, errorCodes } from './error-codes.ts';

export interface ServiceErrorOptions {
  /** How long a caller should wait before trying again, in milliseconds; at least 1. */
  retryAfterMs?: number;
  /** Facts for the log, never for the caller. */
  details?: Record<string, unknown>;
  cause?: unknown;
}

/** The only error that a caller may see: a stable code and a sentence that says what to do. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;
  details: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, message: string, options: ServiceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterMs = options.retryAfterMs ?? (errorCodes[code][1] ? 1_000 : undefined);
    this.details = options.details;
  }

  get status(): number {
    return errorCodes[this.code][0];
  }

  get retryable(): boolean {
    return errorCodes[this.code][1];
  }
}

/** Adds facts for the log to an error that passes by; what it says already stays. Returns the same error. */
export function withDetails<Thrown>(thrown: Thrown, details: Readonly<Record<string, unknown>>): Thrown {
  if (thrown instanceof ServiceError) thrown.details = { ...details, ...thrown.details };
  return thrown;
}
