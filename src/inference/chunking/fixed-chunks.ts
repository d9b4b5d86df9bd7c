import { isInsideWord, type WordTokens, wordTokens } from './word-tokens.ts';

export interface FixedOptions {
  /** Tokens of a chunk at most; at least 1. */
  readonly targetTokens: number;
  /** Tokens that the next chunk repeats, as far as they are no more than half of a chunk. */
  readonly overlapTokens: number;
  /** Where chunks end by preference; what begins with space is left behind, anything else belongs to what it ends. */
  readonly separator: string;
}

/** A piece of a text: places in units of the string, the end exclusive, without space around it. */
export interface TextChunk {
  readonly start: number;
  readonly end: number;
  readonly tokens: number;
}

const sentenceEnds = /[.!?\u2026\u3002\uff01\uff1f]/;
/** Closing marks behind the end of a sentence that are looked past. */
const closersMax = 8;
const closers = /["'\u2019\u201d)\]\u300d\u300f]/;

/**
 * Cuts a text into chunks of at most `targetTokens` tokens. In its second half a chunk ends at the last separator, else at
 * the last line, sentence or word that ends there. The same text and options make the same chunks, always.
 */
export function* fixedChunks(text: string, options: FixedOptions): Generator<TextChunk> {
  let from = 0;
  for (;;) {
    const tokens = wordTokens(text, from, options.targetTokens + 1);
    const { starts, ends } = tokens;
    const [start] = starts;
    if (start === undefined) return;
    if (starts.length <= options.targetTokens) {
      yield { start, end: ends.at(-1) ?? start, tokens: starts.length };
      return;
    }
    const kept = cutOf(text, tokens, options);
    const end = ends[kept - 1] ?? start;
    yield { start, end, tokens: kept };
    const repeated = Math.min(options.overlapTokens, Math.floor(kept / 2));
    from = repeated === 0 ? end : beginOf(text, tokens, kept - repeated, kept);
  }
}

/** How many of the tokens make the chunk; there is one token more than fit. */
function cutOf(text: string, { starts, ends }: WordTokens, { targetTokens, separator }: FixedOptions): number {
  const least = Math.max(1, Math.ceil(targetTokens / 2));
  const separated = separator === '' ? 0 : separatedCut(text, { starts, ends }, separator, least);
  if (separated > 0) return separated;
  let best = targetTokens;
  let bestRank = -1;
  for (let kept = targetTokens; kept >= least; kept -= 1) {
    const rank = rankOf(text, ends[kept - 1] ?? 0, starts[kept] ?? text.length);
    if (rank <= bestRank) continue;
    best = kept;
    bestRank = rank;
  }
  return best;
}

function separatedCut(text: string, { starts, ends }: WordTokens, separator: string, least: number): number {
  const last = starts.at(-1) ?? 0;
  // A text without separators would be read from its beginning for each chunk.
  const from = Math.max(0, (starts[0] ?? 0) - separator.length);
  const found = text.slice(from, last + separator.length).lastIndexOf(separator);
  const at = found < 0 ? -1 : from + found;
  const place = /^\s/.test(separator) ? at : at + separator.length;
  if (at < 0 || place > last) return 0;
  const kept = ends.findLastIndex((end) => end <= place) + 1;
  return kept >= least ? kept : 0;
}

/** How well a chunk may end between two tokens: 3 a line, 2 a sentence, 1 a word, 0 within a word. */
function rankOf(text: string, end: number, next: number): number {
  const gap = text.slice(end, next);
  if (gap.includes('\n')) return 3;
  let last = end - 1;
  const first = Math.max(0, last - closersMax);
  while (last > first && closers.test(text.charAt(last))) last -= 1;
  if (sentenceEnds.test(text.charAt(last)) && (gap !== '' || text.charCodeAt(last) > 0x7f)) return 2;
  return isInsideWord(text, end) && gap === '' ? 0 : 1;
}

/** Where the next chunk begins: at a token of the overlap that begins a word, if there is one. */
function beginOf(text: string, { starts, ends }: WordTokens, first: number, kept: number): number {
  for (let at = first; at < kept; at += 1) {
    const start = starts[at] ?? 0;
    if (!isInsideWord(text, start)) return start;
  }
  return ends[kept - 1] ?? 0;
}
