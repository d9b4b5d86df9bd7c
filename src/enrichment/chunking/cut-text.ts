import { limits } from '../../config/limits.ts';
import type { ChunkerConfig, ModelChunker } from '../../index-kinds/configuration/chunker-config.ts';
import type { InferenceCall } from '../../inference/admission.ts';
import { fixedChunks } from '../../inference/chunking/fixed-chunks.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** A piece of a text, and where it lies there: places in units of the string, the end exclusive. */
export interface TextPiece {
  readonly start: number;
  readonly end: number;
}

/** Cuts texts by a model. Throws `ServiceError`; see `faultOf` for whose fault it is. */
export type CutByModel = (text: string, chunker: ModelChunker, call: InferenceCall) => Promise<readonly TextPiece[]>;

/** For chunkers that ask a model. */
export interface Cutting {
  readonly byModel: CutByModel;
  readonly call: InferenceCall;
}

/** Characters that are cut before the loop yields to others. */
const charsBetweenTurns = 128 * 1_024;

/**
 * The chunks of a text, in its order; none of a text of white space alone. The same text and configuration make the same
 * chunks, always. A configuration may leave out what comes behind its `chunksMax`. Throws `limit_exceeded` where it does not and
 * there would be more than a document may have: to leave the rest out would be an index that looks complete. Throws what a
 * model throws.
 */
export async function cutText(text: string, chunker: ChunkerConfig, cutting: Cutting): Promise<readonly TextPiece[]> {
  const pieces = await cutPieces(text, chunker, cutting);
  const isFull = chunker.by !== 'nothing' && pieces.length >= limits.documentChunksMax;
  if (isFull && text.slice(pieces.at(-1)?.end).trim() !== '') throw tooManyChunks(limits.documentChunksMax);
  return pieces;
}

export function tooManyChunks(most: number): ServiceError {
  const remedy = 'make chunks larger, or give a chunker "max_chunks" to leave out the rest of long texts';
  return new ServiceError('limit_exceeded', `the text makes more than ${most} chunks, which is the most; ${remedy}`);
}

async function cutPieces(text: string, chunker: ChunkerConfig, cutting: Cutting): Promise<readonly TextPiece[]> {
  if (chunker.by === 'model') return text.trim() === '' ? [] : await cutting.byModel(text, chunker, cutting.call);
  const pieces: TextPiece[] = [];
  let untilTurn = charsBetweenTurns;
  for (const { start, end } of piecesOf(text, chunker)) {
    pieces.push({ start, end });
    if (chunker.by !== 'nothing' && pieces.length >= chunker.chunksMax) break;
    untilTurn -= end - start;
    if (untilTurn > 0) continue;
    untilTurn = charsBetweenTurns;
    await yieldToEventLoop();
  }
  return pieces;
}

function piecesOf(text: string, chunker: Exclude<ChunkerConfig, ModelChunker>): Iterable<TextPiece> {
  if (chunker.by === 'tokens') return fixedChunks(text, chunker);
  if (chunker.by === 'characters') return windowsOf(text, chunker.size, chunker.overlap);
  return text.trim() === '' ? [] : [{ start: 0, end: text.length }];
}

/** Windows of `size` characters, each of which begins `overlap` characters before the end of the one in front. */
function* windowsOf(text: string, size: number, overlap: number): Generator<TextPiece> {
  let start = 0;
  while (start < text.length) {
    const end = forward(text, start, size);
    if (text.slice(start, end).trim() !== '') yield { start, end };
    if (end >= text.length) return;
    start = forward(text, start, size - overlap);
  }
}

/** The offset `characters` characters behind `from`; a pair of surrogates is one. */
function forward(text: string, from: number, characters: number): number {
  let offset = from;
  for (let count = 0; count < characters && offset < text.length; count += 1) {
    offset += (text.codePointAt(offset) ?? 0) > 0xffff ? 2 : 1;
  }
  return offset;
}
