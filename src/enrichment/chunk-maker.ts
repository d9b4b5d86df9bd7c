import type { ChunkerConfig } from '../index-kinds/chunker-config.ts';
import { chunkSetBody, type TextChunk } from '../lib/parts/chunk-set-part.ts';
import { CodePointPlaces } from '../lib/text/code-points.ts';
import { cutText } from './cut-text.ts';
import { type Made, type PartMaker, textIn } from './part-maker.ts';

/** The chunks of the text of each source. */
export function chunkMaker(chunker: ChunkerConfig): PartMaker {
  return async (sources) => {
    const made: Made[] = [];
    for (const source of sources) {
      const chunks = await chunksOf(textIn(source), chunker);
      if (chunks.length === 0) made.push({ kind: 'none' });
      else made.push({ kind: 'part', body: (partId, hash) => chunkSetBody(partId, chunks, hash) });
    }
    return made;
  };
}

/** The chunks of a text, in its order; places are characters (Unicode code points). */
export async function chunksOf(text: string, chunker: ChunkerConfig): Promise<TextChunk[]> {
  const places = { starts: new CodePointPlaces(text), ends: new CodePointPlaces(text) };
  const cut = await cutText(text, chunker);
  return cut.map(({ start, end }) => {
    return { start: places.starts.at(start), end: places.ends.at(end), text: text.slice(start, end) };
  });
}
