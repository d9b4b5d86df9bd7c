import { limits } from '../../../config/limits.ts';
import { KiB } from '../../../lib/units.ts';
import type { RouteContext } from '../../routing/route.ts';
import { jsonType, Reply } from '../reply.ts';
import { takenStream } from './page-stream.ts';

/** Characters, or bytes, that are sent at a time. */
const chunkLength = 256 * KiB;

/** Whether the text of an answer counts among large ones. */
export function isLarge(answer: Reply | Response): answer is Reply {
  if (!(answer instanceof Reply) || answer.text === null) return false;
  return Array.isArray(answer.text) || answer.text.length > limits.smallAnswerBytesMax;
}

/** Bytes that an answer holds; of pieces their characters, because each becomes bytes when it is sent. */
export function heldBytes({ text }: Reply): number {
  if (!Array.isArray(text)) return text === null ? 0 : Buffer.byteLength(text);
  return text.reduce((sum, { length }) => sum + length, 0);
}

/** An answer that is sent as its client takes it. `onEnd` is called once, when nothing of it is held any more. */
export function streamedReply(
  { status, text, headers }: Reply,
  context: Pick<RouteContext<unknown, unknown, unknown>, 'openStream'>,
  onEnd: () => void,
): Response {
  const chunks = Array.isArray(text) ? chunksOfPieces(text) : chunksOf(text ?? '');
  const body = takenStream(chunks, context, onEnd);
  return new Response(body, { status, headers: { 'content-type': jsonType, ...headers } });
}

function* chunksOf(text: string | Uint8Array<ArrayBuffer>): Generator<Uint8Array<ArrayBuffer>, undefined> {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  for (let start = 0; start < bytes.length; start += chunkLength) yield bytes.subarray(start, start + chunkLength);
}

/** Pieces that are sent are given up. */
function* chunksOfPieces(pieces: string[]): Generator<string, undefined> {
  let chunk: string[] = [];
  let length = 0;
  for (const [at, piece] of pieces.entries()) {
    pieces[at] = '';
    chunk.push(piece);
    length += piece.length;
    if (length < chunkLength) continue;
    yield chunk.join('');
    chunk = [];
    length = 0;
  }
  yield chunk.join('');
}
