import type { RouteAnswer } from '../routing/route.ts';
import type { Exchange } from './exchange.ts';
import { msgpackReply } from './msgpack/msgpack-answer.ts';
import { Reply } from './reply.ts';

/**
 * Kept, written to, and copied by each answer: building headers from an object costs as much as the rest of a small answer,
 * and writing to those of a response half of that. By the names that answers have of their own, which handlers choose, never
 * a request.
 */
const headersOfJson = new Map<string, Headers>();
const headersOfNothing = new Map<string, Headers>();

/** By hundredths of a millisecond. */
const keptTimings = Array.from({ length: 1_000 }, (_, hundredth) => timingText(hundredth / 100));

/** What a handler has returned, with the status of its route. */
export function toReply(answer: RouteAnswer, exchange: Exchange): Reply | Response {
  if (answer instanceof Reply || answer instanceof Response) return answer;
  const status = exchange.route?.successStatus ?? 200;
  if (answer === undefined) return new Reply(status, null);
  return exchange.acceptsMsgpack ? msgpackReply(status, answer) : new Reply(status, JSON.stringify(answer));
}

/** The response to an exchange, with the headers that every answer has. */
export function toResponse(answer: Reply | Response, exchange: Exchange, durationMs: number): Response {
  if (answer instanceof Response) {
    const { headers } = answer;
    if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
    setCommon(headers, exchange, durationMs);
    return answer;
  }
  const { status, text, headers: own } = answer;
  const headers = keptHeaders(text === null, own);
  for (const name in own) headers.set(name, own[name] ?? '');
  setCommon(headers, exchange, durationMs);
  return new Response(text, { status, headers });
}

function keptHeaders(isEmpty: boolean, own: Reply['headers']): Headers {
  const names = own === undefined ? '' : Object.keys(own).join();
  const kept = isEmpty ? headersOfNothing : headersOfJson;
  const known = kept.get(names);
  if (known !== undefined) return known;
  const type = isEmpty ? {} : { 'content-type': 'application/json' };
  const headers = new Headers({ ...type, 'cache-control': 'no-store' });
  kept.set(names, headers);
  return headers;
}

/** `total;dur=0.42`; those of short requests are kept, because writing a fraction costs as much as the rest of the header. */
function totalTiming(durationMs: number): string {
  return keptTimings[Math.round(durationMs * 100)] ?? timingText(durationMs);
}

function timingText(durationMs: number): string {
  return `total;dur=${durationMs.toFixed(2)}`;
}

function setCommon(headers: Headers, { requestId, timings }: Exchange, durationMs: number): void {
  headers.set('x-request-id', requestId);
  headers.set('server-timing', timings + totalTiming(durationMs));
}
