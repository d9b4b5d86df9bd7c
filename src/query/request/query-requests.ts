import { limits } from '../../config/limits.ts';
import { isJson, scanJson } from '../../engine/json-scan.ts';
import { must } from '../../lib/assert.ts';
import { forEachYielding } from '../../lib/concurrency/yield-to-event-loop.ts';
import { skipSpace, skipValue } from '../../lib/text/json-text.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { isObject } from '../nodes/query-members.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();

/** The requests of a body, as JSON values, in order. Fails with `invalid_json`, `invalid_request` or `limit_exceeded`. */
export async function readQueryRequests(body: Uint8Array): Promise<unknown[]> {
  let text: string;
  try {
    text = utf8.decode(body);
  } catch {
    throw new ServiceError('invalid_json', 'the body is not valid UTF-8');
  }
  // Nearly always it is one object: then there is nothing to cut.
  const mayBeOne = body.byteLength <= limits.queryBytesMax && text[0] !== '[';
  const value: unknown = mayBeOne && isJson(body) ? JSON.parse(text) : undefined;
  if (isObject(value)) return [value];
  const texts = splitQueryRequests(text);
  const requests: unknown[] = [];
  const read = (index: number) => {
    const request = must(texts[index], 'a text for each request');
    scanJson(encoder.encode(request));
    requests.push(JSON.parse(request));
  };
  await forEachYielding(texts.length, read, 1);
  return requests;
}

/**
 * Cuts a body into the JSON texts of its requests: one object, several objects one after the other (on lines of
 * their own or not), or an array of objects. The cut is linear and only counts brackets: each text is still to be
 * checked as JSON.
 */
export function splitQueryRequests(body: string): string[] {
  const start = skipSpace(body, 0);
  const requests = body[start] === '[' ? splitArray(body, start) : splitStream(body, start);
  if (requests.length === 0) throw new ServiceError('invalid_request', 'the body holds no query');
  return requests;
}

function splitStream(body: string, start: number): string[] {
  const requests: string[] = [];
  let position = start;
  while (position < body.length) {
    position = readObject(body, position, requests);
    position = skipSpace(body, position);
  }
  return requests;
}

function splitArray(body: string, start: number): string[] {
  const requests: string[] = [];
  let position = skipSpace(body, start + 1);
  while (body[position] !== ']' || requests.length > 0) {
    position = skipSpace(body, readObject(body, position, requests));
    if (body[position] === ']') break;
    if (body[position] !== ',') throw broken(position, 'a comma or the end of the array is missing');
    position = skipSpace(body, position + 1);
  }
  const end = skipSpace(body, position + 1);
  if (end < body.length) throw broken(end, 'something follows the array of queries');
  return requests;
}

/** Adds the object at `position` and returns the position after it. */
function readObject(body: string, position: number, requests: string[]): number {
  if (body[position] !== '{') throw notAnObject(body, position);
  const end = skipValue(body, position);
  if (end < 0) throw broken(position, 'the object that begins here never ends');
  if (requests.length === limits.multiQueryMax) {
    throw new ServiceError('limit_exceeded', `a body holds at most ${limits.multiQueryMax} queries`);
  }
  const request = body.slice(position, end);
  if (Buffer.byteLength(request) > limits.queryBytesMax) {
    throw new ServiceError('limit_exceeded', `one query has at most ${limits.queryBytesMax} bytes`);
  }
  requests.push(request);
  return end;
}

const otherValues = /(?:null|true|false)\b|["\d-]/y;

/** JSON of another kind is not broken: then the kind is what is wrong. */
function notAnObject(body: string, position: number): ServiceError {
  otherValues.lastIndex = position;
  const what = 'a query must be a JSON object';
  if (!otherValues.test(body)) return broken(position, what);
  return new ServiceError('invalid_request', `the body is not a query: ${what}, at character ${position + 1}`);
}

function broken(position: number, what: string): ServiceError {
  return new ServiceError('invalid_json', `the body is not JSON: ${what}, at character ${position + 1}`, {
    details: { position },
  });
}
