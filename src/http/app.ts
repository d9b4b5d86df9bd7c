import type { LimitOptions } from '../config/limits.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observability/logger.ts';
import { isInferencePath } from '../protocol/inference/error-body.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { errorReply, inferenceErrorReply, isFault, toServiceError } from './error-response.ts';
import { type ConnectionOf, type ExtendIdle, type InFlightRequest, InFlightRequests } from './in-flight-requests.ts';
import { readJson, type ScanJson } from './json-reader.ts';
import { readQuery } from './query-parameters.ts';
import { Reply } from './reply.ts';
import { announcedLength, incomplete, isReadWhole, readBody } from './request-body.ts';
import { RequestContext, requestIdOf } from './request-context.ts';
import type { BodySpec, JsonBody, Route, RouteAnswer } from './route.ts';
import { checkDecoding, pathOf, RouteTable } from './route-table.ts';

/** One answered request. `route` is the pattern, never the path, so that its values are bounded. */
export interface RequestObservation {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
}

export interface AppDependencies {
  readonly routes: readonly Route[];
  readonly scanJson: ScanJson;
  readonly clock: Clock;
  readonly logger: Logger;
  /** A fresh request id. */
  readonly freshId: () => string;
  readonly limits: LimitOptions;
  readonly observe?: (observation: RequestObservation) => void;
  /** Told of every fault of ours that was answered 500. */
  readonly onFault?: (thrown: unknown) => void;
  readonly extendIdle?: ExtendIdle;
  readonly connectionOf?: ConnectionOf;
  /** Paths whose errors have the shape of the inference plane; `/ai/v1` and `/ml/v1` unless told otherwise. */
  readonly isInferencePath?: (path: string) => boolean;
}

interface Match {
  readonly route: Route;
  readonly params: Record<string, string>;
}

/**
 * The HTTP interface without a port: everything between a request and its answer that is not a route's own business.
 * A listener passes what the runtime's router matched to `serve`, the rest to `refuse`; tests and an embedding program
 * call `handle`.
 */
export class App {
  readonly routes: readonly Route[];
  readonly inFlight: InFlightRequests;
  readonly #table: RouteTable;
  readonly #deps: AppDependencies;
  readonly #isInferencePath: (path: string) => boolean;

  constructor(deps: AppDependencies) {
    this.routes = deps.routes;
    this.#deps = deps;
    this.#isInferencePath = deps.isInferencePath ?? isInferencePath;
    this.#table = new RouteTable(deps.routes);
    this.inFlight = new InFlightRequests(deps.clock, deps.limits, {
      extendIdle: deps.extendIdle ?? (() => {}),
      connectionOf: deps.connectionOf ?? (() => undefined),
    });
  }

  /** Routes, answers, never rejects. */
  handle(request: Request): Promise<Response> {
    const path = pathOf(request.url);
    return this.#answer(request, () => this.#table.find(request.method, withoutEmptySegments(path)));
  }

  /** Answers a request whose route and decoded parameters are known. Never rejects. */
  serve(route: Route, request: Request, params: Record<string, string>): Promise<Response> {
    return this.#answer(request, () => {
      checkDecoding(params, request);
      return { route, params };
    });
  }

  /**
   * Answers a request that the runtime's router knows no route for: 405 where the path has other methods, else 404.
   * A base URL that ends in `/` makes clients of the inference plane ask for `/ai/v1//models`; that is served.
   */
  refuse(request: Request): Promise<Response> {
    const path = pathOf(request.url);
    const collapsed = withoutEmptySegments(path);
    return this.#answer(request, () => (collapsed === path ? undefined : this.#table.find(request.method, collapsed)));
  }

  /** Never rejects: whatever is thrown becomes an answer, and a request that takes too long is answered without it. */
  #answer(request: Request, match: () => Match | undefined): Promise<Response> {
    return new Promise((resolve) => {
      const startedMs = this.#deps.clock.monotonicMs();
      const requestId = requestIdOf(request, this.#deps.limits.requestIdBytesMax, this.#deps.freshId);
      let route: Route | undefined;
      let context: RequestContext | undefined;
      let entry: InFlightRequest | undefined;
      let answered = false;
      const finish = (answer: Reply | Response) => {
        if (answered) return;
        answered = true;
        if (entry !== undefined) this.inFlight.end(entry);
        const durationMs = this.#deps.clock.monotonicMs() - startedMs;
        this.#report(request, route, answer.status, durationMs, requestId);
        const timing = `${context?.timings ?? ''}total;dur=${durationMs.toFixed(2)}`;
        resolve(this.#render(answer, request, requestId, timing));
      };
      const fail = (thrown: unknown) => {
        if (!answered) finish(this.#failed(thrown, request, requestId, route));
      };
      try {
        const found = match();
        route = found?.route;
        entry = this.inFlight.begin(request, startedMs, fail, route?.always);
        if (found === undefined) return finish(this.#unmatched(request));
        context = new RequestContext(entry, requestId, found.params, {
          openStream: (onStop) => ({
            end: this.inFlight.openStream(request, onStop),
            failed: (thrown) => this.#understood(thrown, requestId, route),
          }),
          isAlone: () => this.inFlight.isAlone(request),
        });
        this.#run(found.route, context, entry).then(finish, fail);
      } catch (thrown) {
        fail(thrown);
      }
    });
  }

  async #run(route: Route, context: RequestContext, entry: InFlightRequest): Promise<Reply | Response> {
    if (route.query !== undefined) context.query = readQuery(entry.request.url, route.query);
    if (route.body !== undefined) {
      const bytes = await this.#readBody(route.body, entry);
      context.body = route.body.kind === 'bytes' ? bytes : this.#parse(bytes, route.body);
    }
    const result = route.handler(context);
    return toReply(result instanceof Promise ? await result : result, route.successStatus);
  }

  async #readBody(spec: NonNullable<BodySpec>, entry: InFlightRequest): Promise<Uint8Array> {
    const { clock, limits } = this.#deps;
    const length = announcedLength(entry.request.headers);
    if (length !== undefined && length <= spec.bytesMax) this.inFlight.reserveBody(entry, length);
    entry.awaitsWholeBody = isReadWhole(length);
    const onReceived = () => {
      entry.awaitsWholeBody = false;
    };
    try {
      const bytes = await readBody(entry.request, length, {
        bytesMax: spec.bytesMax,
        gzip: spec.gzip ?? false,
        deadlineMs: limits.bodyDeadlineMs,
        bytesPerSecondMin: limits.bodyBytesPerSecondMin,
        clock,
        onReceived,
      });
      if (bytes.byteLength > entry.bodyBytes) this.inFlight.reserveBody(entry, bytes.byteLength - entry.bodyBytes);
      return bytes;
    } catch (thrown) {
      throw thrown instanceof ServiceError ? thrown : incomplete(thrown);
    } finally {
      onReceived();
    }
  }

  #parse(bytes: Uint8Array, spec: JsonBody): unknown {
    if (!isBlank(bytes)) return readJson(bytes, spec, this.#deps.scanJson);
    if (spec.optional) return undefined;
    throw new ServiceError('invalid_request', 'the body is empty; this route takes a JSON object');
  }

  #unmatched(request: Request): Reply {
    const path = pathOf(request.url);
    const methods = this.#table.methodsOf(path);
    if (methods.length === 0)
      throw new ServiceError('not_found', 'there is no such route; GET /docs lists what there is');
    const error = new ServiceError(
      'method_not_allowed',
      `this path takes ${methods.join(', ')}, not ${request.method}`,
    );
    const allow = { allow: methods.join(', ') };
    return this.#isInferencePath(path) ? inferenceErrorReply(error, allow) : errorReply(error, allow);
  }

  #failed(thrown: unknown, request: Request, requestId: string, route: Route | undefined): Reply {
    const error = this.#understood(thrown, requestId, route);
    return this.#isInferencePath(pathOf(request.url)) ? inferenceErrorReply(error) : errorReply(error);
  }

  /** What was thrown, as what the caller may see; faults go to the log. */
  #understood(thrown: unknown, requestId: string, route: Route | undefined): ServiceError {
    const error = toServiceError(thrown);
    if (isFault(thrown)) {
      const cause = thrown instanceof ServiceError && thrown.cause !== undefined ? thrown.cause : thrown;
      this.#deps.logger.error('a request met a fault', { request_id: requestId, route: route?.path }, cause);
      this.#deps.onFault?.(thrown);
    }
    return error;
  }

  #report(request: Request, route: Route | undefined, status: number, durationMs: number, requestId: string): void {
    const { logger, observe } = this.#deps;
    const pattern = route?.path ?? 'unmatched';
    observe?.({ route: pattern, method: request.method, status, durationMs });
    if (logger.level !== 'debug') return;
    logger.debug('request', {
      request_id: requestId,
      route: pattern,
      method: request.method,
      status,
      duration_ms: durationMs,
    });
  }

  #render(answer: Reply | Response, request: Request, requestId: string, timing: string): Response {
    const headers: Record<string, string> = {
      'x-request-id': requestId,
      'cache-control': 'no-store',
      'server-timing': timing,
    };
    // The runtime closes the socket when asked to, but does not say so.
    if (this.inFlight.draining || wantsClose(request)) headers.connection = 'close';
    if (answer instanceof Response) {
      for (const name in headers) {
        if (name !== 'cache-control' || !answer.headers.has(name)) answer.headers.set(name, headers[name] ?? '');
      }
      return answer;
    }
    if (answer.text !== null) headers['content-type'] = 'application/json';
    Object.assign(headers, answer.headers);
    return new Response(answer.text, { status: answer.status, headers });
  }
}

function wantsClose(request: Request): boolean {
  const connection = request.headers.get('connection');
  return connection !== null && /\bclose\b/i.test(connection);
}

function toReply(answer: RouteAnswer, status: number): Reply | Response {
  if (answer instanceof Reply || answer instanceof Response) return answer;
  return answer === undefined ? new Reply(status, null) : new Reply(status, JSON.stringify(answer));
}

/** Only the inference plane is lenient: a key of a document may well be empty by mistake. */
function withoutEmptySegments(path: string): string {
  return isInferencePath(path) ? path.replaceAll(/\/{2,}/g, '/') : path;
}

/** Nothing but JSON's own white space. */
function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d);
}
