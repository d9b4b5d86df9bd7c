import type { Session } from '../../access/access-state.ts';
import type { Origin } from '../../access/authentication/authenticator.ts';
import { keyIdIn } from '../../access/authentication/credentials.ts';
import type { AccessLevel } from '../../access/grants.ts';
import type { Caller, Principal, RowFilters } from '../../access/principal.ts';
import type { OpenStream, Route, RouteContext, StreamOptions } from '../routing/route.ts';
import { accepts } from './accepts.ts';
import { InFlightRequest } from './in-flight-requests.ts';
import { msgpackName } from './msgpack/msgpack-answer.ts';

const noTables: readonly string[] = [];
const idAllowed = /^[A-Za-z0-9._:/+=@-]+$/;

/** Services of the application that an exchange uses. */
export interface ExchangeHost {
  /** Begins an answer that outlives its handler. */
  openStream(exchange: Exchange, onStop: (error: Error) => void, options?: StreamOptions): OpenStream;
  /** The address of a client. */
  clientOf(request: Request): string | undefined;
  /** Counts bytes of an answer that are about to be held whole, see `QueryCaller`. */
  holdAnswer(exchange: Exchange, bytes: number): Promise<void> | undefined;
  /** Notes the connection of a request that queries; whether only its client waits for an answer. */
  noteQuery(request: Request): boolean;
}

/** One request and what is known of it: the context that handlers get, filled stage by stage. */
export class Exchange
  extends InFlightRequest
  implements Caller, Origin, RouteContext<Record<string, string>, unknown, unknown>
{
  principal: Principal;
  rowFilter: RowFilters | undefined = undefined;
  readonly requestId: string;
  /** Made in this process; it has come over no connection. */
  isCall = false;
  /** Set once the request has reached its route. */
  route: Route | undefined = undefined;
  params: Record<string, string> = {};
  query: unknown = undefined;
  body: unknown = undefined;
  timings = '';
  /** Tables that the request uses, beside the one in its path. */
  tables: readonly string[] = noTables;
  /** Whether a table that a body has named was to be changed. */
  hasChanged = false;
  /** Its client has left, and its work was ended for that. */
  isAbandoned = false;
  /** The foreign origin whose pages may read the answer. */
  openToOrigin: string | undefined = undefined;
  /** The answer, once there is one. */
  response: Response | undefined = undefined;
  /** The answer for Elysia, which is given it by the handler of a call. */
  answer: Response | Promise<Response> | undefined = undefined;
  readonly #host: ExchangeHost;
  #isAlone: boolean | undefined;

  constructor(request: Request, startedMs: number, by: Pick<Caller, 'principal' | 'requestId'>, host: ExchangeHost) {
    super(request, startedMs);
    this.principal = by.principal;
    this.requestId = by.requestId;
    this.#host = host;
  }

  /** By whom the request is made is known from now on. */
  identified({ principal, rowFilter }: Session): void {
    this.principal = principal;
    this.rowFilter = rowFilter;
  }

  /** Few ask for it, so it is read from the header that has identified the caller. */
  get keyId(): string | undefined {
    const { principal } = this;
    if (principal.kind === 'everyone' || principal.byKey !== true) return undefined;
    return keyIdIn(this.request.headers.get('authorization') ?? '');
  }

  noteTable(table: string, level: AccessLevel): void {
    if (table === this.params.table) return;
    if (!this.tables.includes(table)) this.tables = [...this.tables, table];
    this.hasChanged ||= this.route?.access === 'tables' && level !== 'read';
  }

  noteMade(kind: string, id: string): void {
    this.params = { ...this.params, [kind]: id };
  }

  clientAddress(): string | undefined {
    return this.#host.clientOf(this.request);
  }

  get caller(): this {
    return this;
  }

  get acceptsMsgpack(): boolean {
    return this.route?.msgpack === true && accepts(this.request.headers.get('accept'), msgpackName);
  }

  /** Found out by the first query of the request, and the same for all of them. */
  isAlone(): boolean {
    this.#isAlone ??= this.#host.noteQuery(this.request);
    return this.#isAlone;
  }

  holdAnswer(bytes: number): Promise<void> | undefined {
    return this.#host.holdAnswer(this, bytes);
  }

  addTiming(stage: string, durationMs: number): void {
    this.timings += `${stage};dur=${durationMs.toFixed(2)}, `;
  }

  openStream(onStop: (error: Error) => void, options?: StreamOptions): OpenStream {
    return this.#host.openStream(this, onStop, options);
  }
}

/** The caller's request id when it is harmless in a header and in a log, else a fresh one. */
export function requestIdOf(headers: Headers, bytesMax: number, freshId: () => string): string {
  const given = headers.get('x-request-id');
  return given !== null && given.length <= bytesMax && idAllowed.test(given) ? given : freshId();
}
