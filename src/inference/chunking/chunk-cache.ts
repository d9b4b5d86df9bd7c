import type { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';
import { expiringCache } from '../../runtime/expiring-cache.ts';
import type { TextChunk } from './fixed-chunks.ts';

/** How a text was cut, and by what. The text itself is not kept: whoever asks has it. */
export interface CutText {
  readonly model: string;
  readonly chunks: readonly TextChunk[];
  readonly tokens: number;
}

interface ChunkCacheOptions {
  readonly keptMs: number;
  /** Chunks of all entries. */
  readonly chunksMax: number;
}

/** How texts were cut, by `chunkKey`. */
export type ChunkCache = LRUCache<string, CutText>;

export function openChunkCache(clock: Clock, { keptMs, chunksMax }: ChunkCacheOptions): ChunkCache {
  return expiringCache<CutText>({ clock, keptMs, max: chunksMax, sizeOf: ({ chunks }) => chunks.length + 1 });
}

export function chunkKey(configuration: string, text: string): string {
  return new Bun.CryptoHasher('sha256').update(configuration).update('\0').update(text).digest('base64');
}
