import { must } from '../lib/assert.ts';
import type { Clock } from '../lib/clock.ts';
import { pause } from '../lib/clock.ts';
import type { ScrubPage } from '../storage/document-store.ts';
import type { StoredRange } from '../storage/stored-range.ts';
import type { Table } from './table.ts';

export interface ScrubberParts {
  tables: () => Table[];
  clock: Clock;
  /** Time between two passes, milliseconds; 0 turns scrubbing off. */
  intervalMs: number;
  /** Called for every stored document or vector that does not match its checksum. */
  onDamaged(tableName: string, key: string): void;
  onFailed(tableName: string, error: unknown): void;
}

/** A pass reads one page of rows, then rests this long: it may take hours, but nobody notices it. */
const restMs = 20;

/** Reads every stored document and vector now and then, so that damage on disk is found before somebody needs the document. */
export class Scrubber {
  readonly #parts: ScrubberParts;

  constructor(parts: ScrubberParts) {
    this.#parts = parts;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#parts.intervalMs > 0) {
      await pause(this.#parts.clock, this.#parts.intervalMs, signal);
      if (!signal.aborted) await this.scrub(signal);
    }
  }

  /** One pass over all tables. Returns the number of documents read. */
  async scrub(signal: AbortSignal): Promise<number> {
    let read = 0;
    for (const table of this.#parts.tables()) {
      try {
        read += await this.#scrubTable(table, signal);
      } catch (error) {
        this.#parts.onFailed(table.name, error);
      }
    }
    return read;
  }

  async #scrubTable(table: Table, signal: AbortSignal): Promise<number> {
    let read = 0;
    for (let range = 0; range < table.ranges.length; range += 1) {
      read += await this.#scrubPages(table, range, signal, ({ documents }, after) => documents.scrubPage(after));
      await this.#scrubPages(table, range, signal, ({ vectors }, after) => vectors.scrubPage(after));
    }
    return read;
  }

  async #scrubPages(
    table: Table,
    range: number,
    signal: AbortSignal,
    readPage: (stored: StoredRange, after: number) => ScrubPage | undefined,
  ): Promise<number> {
    let read = 0;
    for (let after = -1; !signal.aborted && !table.closing.aborted; ) {
      // Leased page by page: a pass must not keep a table from being dropped or its ranges from being closed.
      using lease = await table.lease();
      const page = readPage(must(lease.ranges[range], 'a range of the table').stored, after);
      if (!page) break;
      for (const key of page.damagedKeys) this.#parts.onDamaged(table.name, key);
      read += page.rows;
      after = page.lastRow;
      await pause(this.#parts.clock, restMs, signal);
    }
    return read;
  }
}
