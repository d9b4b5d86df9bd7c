import type { ServiceError } from '../protocol/service-error.ts';
import type { InFlightRequest } from './in-flight-requests.ts';
import type { OpenStream, RouteContext } from './route.ts';

const idAllowed = /^[A-Za-z0-9._:/+=@-]+$/;

/** The caller's request id when it is harmless in a header and in a log, else a fresh one. */
export function requestIdOf(request: Request, bytesMax: number, freshId: () => string): string {
  const given = request.headers.get('x-request-id');
  return given !== null && given.length <= bytesMax && idAllowed.test(given) ? given : freshId();
}

/** Begins an answer that outlives its handler. */
export type StreamOpener = (onStop: (error: ServiceError) => void) => OpenStream;

/** The context that handlers get; the application fills it step by step. */
export class RequestContext implements RouteContext<Record<string, string>, unknown, unknown> {
  readonly request: Request;
  readonly requestId: string;
  readonly params: Record<string, string>;
  query: unknown = undefined;
  body: unknown = undefined;
  timings = '';
  readonly openStream: StreamOpener;
  readonly isAlone: () => boolean;
  readonly #entry: InFlightRequest;

  constructor(
    entry: InFlightRequest,
    requestId: string,
    params: Record<string, string>,
    { openStream, isAlone }: { openStream: StreamOpener; isAlone: () => boolean },
  ) {
    this.#entry = entry;
    this.openStream = openStream;
    this.isAlone = isAlone;
    this.request = entry.request;
    this.requestId = requestId;
    this.params = params;
  }

  get signal(): AbortSignal {
    return this.#entry.signal;
  }

  addTiming(stage: string, durationMs: number): void {
    this.timings += `${stage};dur=${durationMs.toFixed(2)}, `;
  }
}
