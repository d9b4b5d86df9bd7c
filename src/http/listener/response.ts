import type { RouteAnswer } from '../routing/route.ts';
import type { Exchange } from './exchange.ts';
import { msgpackReply } from './msgpack/msgpack-answer.ts';
import { keptJsonHeaders, Reply, ValueReply, wholeText } from './reply.ts';

/**
 * Kept, written to, and copied by each answer: building headers from an object costs as much as the rest of a small answer,
 * and writing to those of a response half of that.
 */
const jsonHeaders = keptJsonHeaders();
const emptyHeaders = new Headers({ 'cache-control': 'no-store' });

/** By hundredths of a millisecond, each from its first use on. */
const keptTimings = new Array<string | undefined>(1_000);

/** The value that a handler returned, with the status of its route. */
export function toReply(answer: RouteAnswer, exchange: Exchange): Reply | Response {
  if (answer instanceof Reply || answer instanceof Response) return answer;
  if (answer instanceof ValueReply) return written(answer.status, answer.value, answer.headers, exchange);
  return written(exchange.route?.successStatus ?? 200, answer, undefined, exchange);
}

function written(status: number, value: unknown, headers: Reply['headers'], { acceptsMsgpack }: Exchange): Reply {
  if (value === undefined) return new Reply(status, null, headers);
  return acceptsMsgpack ? msgpackReply(status, value, headers) : new Reply(status, JSON.stringify(value), headers);
}

/** The response to an exchange, with the headers that every answer has. */
export function toResponse(answer: Reply | Response, exchange: Exchange, durationMs: number): Response {
  if (answer instanceof Response) {
    const { headers } = answer;
    if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
    setCommon(headers, exchange, durationMs);
    return answer;
  }
  const { status, text, headers: own, kept } = answer;
  const headers = kept ?? (text === null ? emptyHeaders : jsonHeaders);
  setCommon(headers, exchange, durationMs);
  if (kept !== undefined) setAll(kept, own);
  const response = new Response(wholeText(answer), { status, headers });
  // Those of a response are asked for only where something is added: the runtime then has to build them.
  if (kept === undefined && own !== undefined) setAll(response.headers, own);
  return response;
}

/**
 * The same without its body, for a HEAD that is called in this process: the runtime's server leaves bodies out by
 * itself, and tells of the length that it knows, as this does.
 */
export function toHeadResponse(answer: Reply | Response, exchange: Exchange, durationMs: number): Response {
  const { body, status, headers } = toResponse(answer, exchange, durationMs);
  const text = answer instanceof Reply ? wholeText(answer) : null;
  if (text !== null) headers.set('content-length', String(Buffer.byteLength(text)));
  body?.cancel().catch(() => undefined);
  return new Response(null, { status, headers });
}

function setAll(headers: Headers, own: Reply['headers']): void {
  for (const name in own) headers.set(name, own[name] ?? '');
}

/** `total;dur=0.42`; those of short requests are kept, because writing a fraction costs as much as the rest of the header. */
function totalTiming(durationMs: number): string {
  const hundredths = Math.round(durationMs * 100);
  if (hundredths >= keptTimings.length) return timingText(durationMs);
  keptTimings[hundredths] ??= timingText(hundredths / 100);
  return keptTimings[hundredths];
}

function timingText(durationMs: number): string {
  return `total;dur=${durationMs.toFixed(2)}`;
}

function setCommon(headers: Headers, { requestId, timings }: Exchange, durationMs: number): void {
  headers.set('x-request-id', requestId);
  headers.set('server-timing', timings + totalTiming(durationMs));
}
