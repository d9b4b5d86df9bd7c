import type { Made } from './part-maker.ts';

/** Results that are kept, and their bytes; a larger result is not kept at all. */
const resultsMax = 256;
const bytesMax = 4 * 1_024 * 1_024;

/** The results of an enrichment for the next sources that are equal, or for a document whose result came too late. */
export class RecentResults {
  /** By the name of their source, the one that was made last behind the others. */
  readonly #kept = new Map<string, Made>();
  #bytes = 0;

  get(name: string): Made | undefined {
    return this.#kept.get(name);
  }

  keep(name: string, made: Made): void {
    if (made.kind === 'failed' || bytesOf(made) > bytesMax) return;
    this.#forget(name);
    this.#kept.set(name, made);
    this.#bytes += bytesOf(made);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= resultsMax && this.#bytes <= bytesMax) return;
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    this.#bytes -= bytesOf(this.#kept.get(name));
    this.#kept.delete(name);
  }
}

function bytesOf(made: Made | undefined): number {
  return made?.kind === 'part' ? made.bytes : 0;
}
