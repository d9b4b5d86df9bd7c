import type { Static, TObject, TSchema } from '@sinclair/typebox';
import type { Caller } from '../../access/principal.ts';
import type { ServiceError } from '../../protocol/service-error.ts';
import type { Reply, ValueReply } from '../listener/reply.ts';
import type { RouteAccess } from './route-access.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH';

/** `/tables/:table/lookup/:key` -> `{ table: string; key: string }`, percent-decoded once. */
type PathParameters<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { readonly [K in Name]: string } & PathParameters<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? { readonly [K in Name]: string }
    : Record<never, never>;

interface BodyOptions {
  /** Bytes, after inflation. A larger body is 413 `payload_too_large`. */
  readonly bytesMax: number;
  /** Accepts `Content-Encoding: gzip`; without it every encoding but identity is 415. */
  readonly gzip?: boolean;
}

/** The body is read, scanned, parsed and checked; the handler gets a typed value. */
export interface JsonBody<Schema extends TSchema = TSchema> extends BodyOptions {
  readonly kind: 'json';
  readonly schema: Schema;
  /** The form of the body where others check it more closely than `schema`; it only documents. */
  readonly documented?: TSchema;
  /** An empty body is allowed, and arrives as `undefined`. */
  readonly optional?: boolean;
  /** Changes the parsed value in place before it is checked; may throw `ServiceError`. Drops nulls unless given. */
  readonly prepare?: (value: unknown, schema: TSchema) => void;
}

/** The handler gets the bytes; `schema` and `contentType` only document what they hold. An empty body is empty bytes. */
interface BytesBody extends BodyOptions {
  readonly kind: 'bytes';
  readonly schema?: TSchema;
  readonly contentType?: string;
  /** Other forms that a `Content-Type` header names, by content type. */
  readonly also?: Readonly<Record<string, TSchema>>;
}

export type BodySpec = JsonBody | BytesBody | undefined;

export type BodyValue<Body> =
  Body extends JsonBody<infer Schema>
    ? Body extends { readonly optional: true }
      ? Static<Schema> | undefined
      : Static<Schema>
    : Body extends BytesBody
      ? Uint8Array
      : undefined;

/** One request as its handler sees it. */
export interface RouteContext<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly request: Request;
  readonly requestId: string;
  /** Aborted when the client leaves or the request's deadline passes. */
  readonly signal: AbortSignal;
  /** On whose behalf services work. It is alone when no other client waits for an answer, as far as can be told. */
  readonly caller: Caller & { isAlone(): boolean; holdAnswer(bytes: number): Promise<void> | undefined };
  /** Whether the answer is to be MessagePack; a plain value is written as such by itself. Only where the route has it. */
  readonly acceptsMsgpack: boolean;
  /** Adds a stage to the `server-timing` header. */
  addTiming(stage: string, durationMs: number): void;
  /**
   * For an answer that goes on after the handler has returned. `onStop` is told when the server stops, and within a second or so
   * when the caller may not have the answer any more.
   */
  openStream(onStop: (error: Error) => void, options?: StreamOptions): OpenStream;
}

export interface StreamOptions {
  /**
   * Whether its connection may be silent for as long as it likes; true unless
   * said. Where not, one that stands still is closed.
   */
  readonly mayBeSilent?: boolean;
}

export interface OpenStream {
  /** The error that the caller may see for something thrown in mid-stream; an internal fault goes to the log. */
  failed(thrown: unknown): ServiceError;
  /** The last byte has been handed over. */
  end(): void;
}

interface ResponseSpec {
  readonly description: string;
  readonly schema?: TSchema;
  readonly contentType?: string;
  /** Other forms that an `Accept` header asks for, by content type. */
  readonly also?: Readonly<Record<string, TSchema>>;
  /** Headers that come with it: of each its meaning, for the documentation. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouteSpec<Path extends string, Query extends TObject, Body extends BodySpec> {
  readonly method: Method;
  /** Full path, parameters as `:name`. */
  readonly path: Path;
  /** Checked before the body is read. */
  readonly access: RouteAccess;
  readonly summary: string;
  readonly description?: string;
  /** Group in the documentation. */
  readonly tag: string;
  /** Members of string, integer, number, boolean, or array of strings (comma separated); unknown ones are ignored. */
  readonly query?: Query;
  /** Headers that the handler reads: of each its meaning, for the documentation. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Body;
  /** By status. The lowest 2xx is the status of a handler that returns a plain value. Errors need not be listed. */
  readonly responses: Readonly<Record<number, ResponseSpec>>;
  /**
   * Models that a body names, for a route with access to inference: a caller that has this access to some models alone may name
   * those. Without it the route is for callers that have it to all.
   */
  readonly models?: (body: BodyValue<Body>) => readonly string[];
  /** Bodies and answers may also be MessagePack, by `Content-Type` and `Accept`. */
  readonly msgpack?: boolean;
  /** Keeps the route out of the published interface. */
  readonly hidden?: boolean;
  /** Has no deadline: it goes on as long as its client waits. */
  readonly takesLong?: boolean;
  /** Answered also while the server is full or stopping: probes. */
  readonly always?: boolean;
  /**
   * Returns a JSON value (`undefined` for an empty answer), a `Reply` (`reply`, `rawJson`) when status or headers
   * matter, or a `Response` to stream. Throws `ServiceError`.
   */
  readonly handler: (
    context: RouteContext<PathParameters<Path>, Static<Query>, BodyValue<Body>>,
  ) => RouteAnswer | Promise<RouteAnswer>;
}

export type RouteAnswer = Reply | ValueReply | Response | object | string | number | boolean | null | undefined;

/** A route with its types forgotten: what the application registers and the documentation renders. */
export interface Route extends Omit<RouteSpec<string, TObject, BodySpec>, 'handler' | 'models'> {
  readonly successStatus: number;
  readonly models?: (body: unknown) => readonly string[];
  readonly handler: (
    context: RouteContext<Record<string, string>, unknown, unknown>,
  ) => RouteAnswer | Promise<RouteAnswer>;
}

type NoQuery = TObject<Record<never, never>>;

/** Declares one route: what it takes, what it answers, and the code behind it. */
export function defineRoute<
  const Path extends string,
  Query extends TObject = NoQuery,
  const Body extends BodySpec = undefined,
>(spec: RouteSpec<Path, Query, Body>): Route {
  const successes = Object.keys(spec.responses)
    .map(Number)
    .filter((status) => status >= 200 && status < 300);
  const successStatus = successes.length > 0 ? Math.min(...successes) : 200;
  // The registry checks what it passes against the very schemas that gave the handler its types.
  return { ...spec, successStatus } as unknown as Route;
}
