import type { Authenticator } from '../../access/authentication/authenticator.ts';
import { everyone, nobody, requireKept, requireModels } from '../../access/principal.ts';
import type { LimitOptions } from '../../config/limits.ts';
import { clientLeft } from '../../inference/admission.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/logger.ts';
import { isInferencePath, isOpenAiPath } from '../../protocol/inference/error-body.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { readJson, type ScanJson } from '../routing/json-reader.ts';
import { readQuery } from '../routing/query-parameters.ts';
import type { BodySpec, JsonBody, Route, RouteAnswer } from '../routing/route.ts';
import { requireAccess } from '../routing/route-access.ts';
import { errorReply, inferenceErrorReply, isFault, openAiErrorReply, toServiceError } from './error-response.ts';
import { Exchange, type ExchangeHost, requestIdOf } from './exchange.ts';
import { type ConnectionOf, type ExtendIdle, InFlightRequests } from './in-flight-requests.ts';
import { addInferenceHeaders, type Permits } from './inference-headers.ts';
import { msgpackName } from './msgpack/msgpack-answer.ts';
import { msgpackToJson } from './msgpack/msgpack-to-json.ts';
import { type OriginGuard, openTo } from './origin-guard.ts';
import type { Reply } from './reply.ts';
import { announcedLength, incomplete, isReadWhole, lengthOfCall, readBody } from './request-body.ts';
import { checkDecoding, pathOf } from './request-path.ts';
import { toHeadResponse, toReply, toResponse } from './response.ts';
import { heldBytes, isLarge, streamedReply } from './streams/large-reply.ts';

/** One answered request. `route` is the pattern, never the path, so that its values are bounded. */
export interface RequestObservation {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
}

export interface RequestRuleOptions {
  readonly scanJson: ScanJson;
  readonly clock: Clock;
  readonly logger: Logger;
  /** A fresh request id. */
  readonly freshId: () => string;
  readonly limits: LimitOptions;
  readonly observe?: (observation: RequestObservation) => void;
  /** Whether every answered request is logged; without it only at the level `debug`. */
  readonly logsAccess?: () => boolean;
  /** The address of a client. */
  readonly clientOf?: (request: Request) => string | undefined;
  /** Called for every internal fault that was answered 500. */
  readonly onFault?: (thrown: unknown) => void;
  readonly extendIdle?: ExtendIdle;
  readonly connectionOf?: ConnectionOf;
  /** Checks the credential of every request to a route that is not open; without it everybody may do everything. */
  readonly authenticator?: Authenticator | undefined;
  /** Told of every request that has an answer. */
  readonly audit?: ((exchange: Exchange, status: number) => void) | undefined;
  /** Says which hosts and web pages may ask; all may where there is none. */
  readonly guard?: OriginGuard;
  /** Told to the clients of inference in the headers of every answer. */
  readonly permits?: Permits;
  /** Paths whose errors have the shape of the inference plane; `/ai/v1` and `/ml/v1` unless told otherwise. */
  readonly isInferencePath?: (path: string) => boolean;
}

/** Of a path in the access log. */
const pathCharsMax = 500;
/** The status that proxies log for a request whose client did not wait for its answer. Nobody is sent it. */
const clientClosedRequest = 499;

/**
 * Everything between a request and its answer that is not a route's own business: request id, admission, limits before
 * the body, deadlines, error bodies, headers and what is counted.
 */
export class RequestRules implements ExchangeHost {
  readonly inFlight: InFlightRequests;
  readonly #options: RequestRuleOptions;
  readonly #isInferencePath: (path: string) => boolean;

  constructor(options: RequestRuleOptions) {
    this.#options = options;
    this.#isInferencePath = options.isInferencePath ?? isInferencePath;
    this.inFlight = new InFlightRequests(options.clock, options.limits, {
      extendIdle: options.extendIdle ?? (() => {}),
      connectionOf: options.connectionOf ?? (() => undefined),
    });
  }

  /**
   * Answers a request to a route: at once where nothing has to be waited for. Never throws or rejects: what a handler returned
   * or what was thrown becomes the response.
   */
  serve(exchange: Exchange, route: Route, params: Record<string, string> | undefined): Response | Promise<Response> {
    try {
      const entering = this.#enter(exchange, route, params);
      const answer =
        entering === undefined ? this.#call(exchange, route) : entering.then(() => this.#call(exchange, route));
      return answer instanceof Promise ? this.#whenAnswered(exchange, answer) : this.#answer(exchange, answer);
    } catch (thrown) {
      return this.fail(exchange, thrown);
    }
  }

  holdAnswer(exchange: Exchange, bytes: number): Promise<void> | undefined {
    return this.inFlight.holdAnswer(exchange, bytes);
  }

  begin(request: Request): Exchange {
    const { clock, limits, freshId, authenticator } = this.#options;
    const requestId = requestIdOf(request.headers, limits.requestIdBytesMax, freshId);
    const principal = authenticator === undefined ? everyone : nobody;
    return new Exchange(request, clock.monotonicMs(), { principal, requestId }, this);
  }

  /** Throws `forbidden` for hosts and pages that may not ask, and `unavailable` while the server is full or stopping. */
  admit(exchange: Exchange): void {
    exchange.openToOrigin = this.#options.guard?.admit(exchange.request.headers);
    this.inFlight.begin(exchange);
  }

  /** Answers with what was thrown. */
  fail(exchange: Exchange, thrown: unknown, headers?: Readonly<Record<string, string>>): Response {
    const error = this.#understand(exchange, thrown);
    return this.finish(exchange, this.#renderer(pathOf(exchange.request.url))(error, headers));
  }

  #renderer(path: string): typeof errorReply {
    if (isOpenAiPath(path)) return openAiErrorReply;
    return this.#isInferencePath(path) ? inferenceErrorReply : errorReply;
  }

  openStream(exchange: Exchange, stop: (error: Error) => void, { mayBeSilent = true } = {}) {
    const requireCaller = () => this.#requireCaller(exchange);
    return {
      end: this.inFlight.openStream(exchange, { stop, requireCaller, mayBeSilent }),
      failed: (thrown: unknown) => this.#understand(exchange, thrown),
    };
  }

  clientOf(request: Request): string | undefined {
    return this.#options.clientOf?.(request);
  }

  noteQuery(request: Request): boolean {
    return this.inFlight.noteQuery(request);
  }

  /**
   * Throws where the caller of an answer that is still being sent may not come in any more, where its route is closed to it now,
   * or where other rows are hidden from it.
   */
  #requireCaller(exchange: Exchange): void {
    const { authenticator } = this.#options;
    const { route, principal, rowFilter } = exchange;
    if (authenticator === undefined || route === undefined || principal.kind === 'everyone') return;
    const session = authenticator.sessionNow(exchange);
    if (session === undefined) throw new ServiceError('unauthorized', 'the credential is not valid any more');
    if (session.principal === principal) return;
    if (JSON.stringify(session.rowFilter) !== JSON.stringify(rowFilter)) {
      throw new ServiceError('forbidden', 'the row filters of the caller have changed');
    }
    exchange.identified(session);
    requireAccess(route, exchange, exchange.params);
    requireKept(exchange, principal, exchange.tables);
    requireNamedModels(route, exchange);
  }

  /** Up to the body: what it takes to be heard at all, then by whom the request is made, then whether that one may. */
  #enter(exchange: Exchange, route: Route, params: Record<string, string> | undefined): Promise<void> | undefined {
    exchange.route = route;
    exchange.takesLong = route.takesLong === true;
    if (!route.always) this.admit(exchange);
    if (params !== undefined) {
      checkDecoding(params, exchange.request);
      exchange.params = params;
    }
    const { authenticator } = this.#options;
    if (authenticator === undefined || route.access === 'open') return this.#allow(exchange, route);
    const session = authenticator.identify(exchange.request.headers, exchange);
    if (session instanceof Promise) {
      return session.then((identified) => {
        exchange.throwIfExpired();
        exchange.identified(identified);
        this.#allow(exchange, route);
      });
    }
    exchange.identified(session);
    return this.#allow(exchange, route);
  }

  #allow(exchange: Exchange, route: Route): undefined {
    requireAccess(route, exchange, exchange.params);
    if (route.query !== undefined) exchange.query = readQuery(exchange.request.url, route.query);
  }

  #call(exchange: Exchange, route: Route): RouteAnswer | Promise<RouteAnswer> {
    return route.body === undefined ? route.handler(exchange) : this.#callWithBody(exchange, route, route.body);
  }

  async #callWithBody(exchange: Exchange, route: Route, body: NonNullable<BodySpec>): Promise<RouteAnswer> {
    const isMsgpack = msgpackName.test(exchange.request.headers.get('content-type') ?? '');
    if (isMsgpack && route.msgpack !== true) throw noMsgpack();
    const sent = await this.#readBody(body, exchange);
    exchange.throwIfExpired();
    const { jsonDepthMax: depthMax } = this.#options.limits;
    const bytes = isMsgpack ? msgpackToJson(sent, { bytesMax: body.bytesMax, depthMax }) : sent;
    exchange.body = body.kind === 'bytes' ? bytes : this.#parse(bytes, body);
    requireNamedModels(route, exchange);
    return route.handler(exchange);
  }

  async #readBody(spec: NonNullable<BodySpec>, exchange: Exchange): Promise<Uint8Array> {
    const { clock, limits } = this.#options;
    const { request } = exchange;
    const length = exchange.isCall ? lengthOfCall(request) : announcedLength(request.headers);
    const count = (bytes: number) => {
      if (bytes > exchange.bodyBytes) this.inFlight.reserveBody(exchange, bytes - exchange.bodyBytes);
    };
    if (length !== undefined && length <= spec.bytesMax) count(length);
    exchange.awaitsWholeBody = isReadWhole(length);
    const onReceived = () => {
      exchange.awaitsWholeBody = false;
    };
    try {
      const bytes = await readBody(exchange.request, length, {
        bytesMax: spec.bytesMax,
        gzip: spec.gzip ?? false,
        deadlineMs: limits.bodyDeadlineMs,
        bytesPerSecondMin: limits.bodyBytesPerSecondMin,
        clock,
        onReceived,
        count,
      });
      count(bytes.byteLength);
      return bytes;
    } catch (thrown) {
      throw thrown instanceof ServiceError ? thrown : incomplete(thrown);
    } finally {
      onReceived();
    }
  }

  #parse(bytes: Uint8Array, spec: JsonBody): unknown {
    if (!isBlank(bytes)) return readJson(bytes, spec, this.#options.scanJson);
    if (spec.optional) return undefined;
    throw new ServiceError('invalid_request', 'the body is empty; this route takes a JSON object');
  }

  /** The outcome of the handler, or the error of its expiry, whichever comes first. */
  #whenAnswered(exchange: Exchange, outcome: Promise<RouteAnswer>): Promise<Response> {
    return new Promise((resolve) => {
      exchange.onExpired((error) => resolve(this.fail(exchange, error)));
      outcome.then(
        (answer) => resolve(exchange.response ?? this.#answer(exchange, answer)),
        (thrown) => resolve(exchange.response ?? this.fail(exchange, thrown)),
      );
    });
  }

  #answer(exchange: Exchange, answer: RouteAnswer): Response | Promise<Response> {
    try {
      const reply = toReply(answer, exchange);
      return isLarge(reply) ? this.#answerLarge(exchange, reply) : this.finish(exchange, reply);
    } catch (thrown) {
      return this.fail(exchange, thrown);
    }
  }

  /** Sends an answer as its client takes it: its bytes count until the last of them is taken, or nobody is there to take them. */
  async #answerLarge(exchange: Exchange, reply: Reply): Promise<Response> {
    try {
      await this.inFlight.holdMadeAnswer(exchange, heldBytes(reply));
      exchange.throwIfExpired();
      // A program of this process has the answer once it is returned.
      if (exchange.isCall) return this.finish(exchange, reply);
      return this.finish(exchange, streamedReply(reply, exchange, this.inFlight.keepAnswer(exchange)));
    } catch (thrown) {
      return exchange.response ?? this.fail(exchange, thrown);
    }
  }

  /**
   * The error that the caller may see for what was thrown. A failure of the server itself goes to the log; that the work of a
   * client who has left was ended is none.
   */
  #understand(exchange: Exchange, thrown: unknown): ServiceError {
    const { requestId, route, params } = exchange;
    exchange.isAbandoned = exchange.request.signal.aborted && isEndedWork(thrown);
    if (exchange.isAbandoned) return clientLeft();
    const error = toServiceError(thrown);
    const where = { request_id: requestId, route: route?.path, table: params.table, ...error.details };
    if (isFault(thrown)) {
      const cause = thrown instanceof ServiceError && thrown.cause !== undefined ? thrown.cause : thrown;
      this.#options.logger.error('unhandled error in request', where, cause);
      this.#options.onFault?.(thrown);
    } else if (error.status >= 500 && error.code !== 'not_implemented') {
      this.#options.logger.warn('request failed', { ...where, code: error.code, reason: error.message }, error.cause);
    }
    return error;
  }

  /** Makes the response, once for each request. */
  finish(exchange: Exchange, answer: Reply | Response): Response {
    this.inFlight.end(exchange);
    const durationMs = this.#options.clock.monotonicMs() - exchange.startedMs;
    this.#report(exchange, answer.status, durationMs);
    this.#options.audit?.(exchange, answer.status);
    const isHead = exchange.isCall && exchange.request.method === 'HEAD';
    const response = (isHead ? toHeadResponse : toResponse)(answer, exchange, durationMs);
    // The headers of a response are asked for only where something is added: the runtime then has to build them.
    if (isInferenceRoute(exchange.route)) addInferenceHeaders(response.headers, durationMs, this.#options.permits);
    // The runtime closes the socket when asked to, but does not say so.
    if (this.inFlight.draining || exchange.isLast || wantsClose(exchange.request))
      response.headers.set('connection', 'close');
    if (exchange.openToOrigin !== undefined) openTo(exchange.openToOrigin, response.headers);
    exchange.response = response;
    return response;
  }

  #report({ request, requestId, route, isAbandoned }: Exchange, answered: number, durationMs: number): void {
    const { logger, observe, logsAccess, clientOf } = this.#options;
    const pattern = route?.path ?? 'unmatched';
    const status = isAbandoned ? clientClosedRequest : answered;
    const { method } = request;
    observe?.({ route: pattern, method, status, durationMs });
    const isAccessLogged = logsAccess?.() === true;
    if (!isAccessLogged && logger.level !== 'debug') return;
    const fields = { request_id: requestId, route: pattern, method, status, duration_ms: durationMs };
    if (isAccessLogged) {
      const path = pathOf(request.url).slice(0, pathCharsMax);
      logger.info('request', { ...fields, path, client: clientOf?.(request) });
    } else {
      logger.debug('request', fields);
    }
  }
}

function requireNamedModels({ access, models }: Route, exchange: Exchange): void {
  if (models === undefined || typeof access !== 'object' || !('inference' in access)) return;
  requireModels(exchange, models(exchange.body), access.inference);
}

function isInferenceRoute(route: Route | undefined): boolean {
  return typeof route?.access === 'object' && 'inference' in route.access;
}

function noMsgpack(): ServiceError {
  return new ServiceError('unsupported_media_type', 'this route takes JSON, not MessagePack');
}

function wantsClose(request: Request): boolean {
  const connection = request.headers.get('connection');
  return connection !== null && /\bclose\b/i.test(connection);
}

/** Whether work that was thrown out of was ended or refused, and did not fail by a bug or by what it was asked. */
function isEndedWork(thrown: unknown): boolean {
  if (thrown instanceof DOMException) return thrown.name === 'AbortError';
  return thrown instanceof ServiceError && thrown.status >= 500 && !isFault(thrown);
}

/** Nothing but JSON's own white space. */
function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d);
}
