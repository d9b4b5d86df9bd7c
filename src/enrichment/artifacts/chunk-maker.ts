import type { ChunkerConfig } from '../../index-kinds/configuration/chunker-config.ts';
import { faultOf } from '../../inference/providers/client/fault.ts';
import { chunkSetBody, type TextChunk } from '../../lib/parts/chunk-set-part.ts';
import { CodePointOffsets } from '../../lib/text/code-points.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type CutByModel, type Cutting, cutText } from '../chunking/cut-text.ts';
import { type Made, type PartMaker, textIn } from './part-maker.ts';

/** The chunks of the text of each source. */
export function chunkMaker(chunker: ChunkerConfig, byModel: CutByModel): PartMaker {
  return async (sources, call, onMade) => {
    const made: Made[] = [];
    for (const [at, source] of sources.entries()) {
      const one = await madeOf(() => chunksOf(textIn(source), chunker, { byModel, call }));
      onMade(at, one);
      made.push(one);
    }
    return made;
  };
}

async function madeOf(cut: () => Promise<readonly TextChunk[]>): Promise<Made> {
  try {
    const chunks = await cut();
    if (chunks.length === 0) return { kind: 'none' };
    const bytes = chunks.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
    return { kind: 'part', bytes, body: (partId, hash) => chunkSetBody(partId, chunks, hash) };
  } catch (error) {
    if (error instanceof ServiceError && faultOf(error) === 'item') return { kind: 'failed', error };
    throw error;
  }
}

/** The chunks of a text, in its order; offsets are characters (Unicode code points). */
async function chunksOf(text: string, chunker: ChunkerConfig, cutting: Cutting): Promise<TextChunk[]> {
  const offsets = { starts: new CodePointOffsets(text), ends: new CodePointOffsets(text) };
  const cut = await cutText(text, chunker, cutting);
  return cut.map(({ start, end }) => {
    return { start: offsets.starts.at(start), end: offsets.ends.at(end), text: text.slice(start, end) };
  });
}
