import { createHash } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import type { TextChunk } from './fixed-chunks.ts';

/** How a text was cut, and by what. The text itself is not kept: whoever asks has it. */
export interface CutText {
  readonly model: string;
  readonly chunks: readonly TextChunk[];
  readonly tokens: number;
}

interface Entry {
  readonly cut: CutText;
  readonly untilMs: number;
}

interface ChunkCacheOptions {
  readonly keptMs: number;
  /** Chunks of all entries. */
  readonly chunksMax: number;
}

/** What was answered lately, by configuration and text. The oldest entries make room. */
export class ChunkCache {
  readonly #clock: Clock;
  readonly #options: ChunkCacheOptions;
  readonly #entries = new Map<string, Entry>();
  #chunks = 0;

  constructor(clock: Clock, options: ChunkCacheOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  static key(configuration: string, text: string): string {
    return createHash('sha256').update(configuration).update('\0').update(text).digest('base64');
  }

  get(key: string): CutText | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.untilMs > this.#clock.monotonicMs()) return entry.cut;
    this.#remove(key, entry);
    return undefined;
  }

  set(key: string, cut: CutText): void {
    const known = this.#entries.get(key);
    if (known !== undefined) this.#remove(key, known);
    const nowMs = this.#clock.monotonicMs();
    const cost = costOf(cut);
    for (const [oldest, entry] of this.#entries) {
      if (entry.untilMs > nowMs && this.#chunks + cost <= this.#options.chunksMax) break;
      this.#remove(oldest, entry);
    }
    if (cost > this.#options.chunksMax) return;
    this.#entries.set(key, { cut, untilMs: nowMs + this.#options.keptMs });
    this.#chunks += cost;
  }

  #remove(key: string, { cut }: Entry): void {
    this.#entries.delete(key);
    this.#chunks -= costOf(cut);
  }
}

function costOf({ chunks }: CutText): number {
  return chunks.length + 1;
}
