import type { Clock } from '../../lib/clock.ts';
import { pause } from '../../lib/clock.ts';
import type { Service } from '../../lib/concurrency/supervise.ts';
import type { ScrubPage } from '../../storage/reader/document-store.ts';
import type { RangeReader } from '../../storage/reader/range-reader.ts';
import type { Table } from '../table.ts';

interface ScrubberDeps {
  tables: () => Table[];
  clock: Clock;
  /** Time between two passes, milliseconds; 0 turns scrubbing off. */
  intervalMs: number;
  /** Called for every stored document or vector that does not match its checksum. */
  onDamaged(rangeId: number, key: string): void;
  /** All rows of a range were read: these keys are damaged, and no others. */
  onRangeRead(rangeId: number, damagedKeys: ReadonlySet<string>): void;
  onFailed(tableName: string, error: unknown): void;
}

/** A pass reads one page of rows, then rests this long: it may take hours, but nobody notices it. */
const restMs = 20;

/** Reads every stored document and vector now and then, so that damage on disk is found before somebody needs the document. */
export class Scrubber implements Service {
  readonly name = 'scrubber';
  readonly #deps: ScrubberDeps;

  constructor(deps: ScrubberDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#deps.intervalMs > 0) {
      await pause(this.#deps.clock, this.#deps.intervalMs, signal);
      if (!signal.aborted) await this.scrub(signal);
    }
  }

  /** One pass over all tables. Returns the number of documents read. */
  async scrub(signal: AbortSignal): Promise<number> {
    let read = 0;
    for (const table of this.#deps.tables()) {
      try {
        read += await this.#scrubTable(table, signal);
      } catch (error) {
        this.#deps.onFailed(table.name, error);
      }
    }
    return read;
  }

  async #scrubTable(table: Table, signal: AbortSignal): Promise<number> {
    let read = 0;
    for (const { rangeId } of table.ranges) {
      const damaged = new Set<string>();
      const pages = { table, rangeId, damaged, signal };
      read += await this.#scrubPages(pages, ({ documents }, after) => documents.scrubPage(after));
      await this.#scrubPages(pages, ({ parts }, after) => parts.scrubPage(after));
      if (signal.aborted || table.closing.aborted) return read;
      this.#deps.onRangeRead(rangeId, damaged);
    }
    return read;
  }

  async #scrubPages(
    { table, rangeId, damaged, signal }: { table: Table; rangeId: number; damaged: Set<string>; signal: AbortSignal },
    readPage: (stored: RangeReader, after: number) => ScrubPage | undefined,
  ): Promise<number> {
    let read = 0;
    for (let after = -1; !signal.aborted && !table.closing.aborted; ) {
      // Leased page by page: a pass must not keep a table from being dropped or its ranges from being closed.
      using lease = await table.leaseForUpkeep(rangeId);
      const page = readPage(lease.range.stored, after);
      if (!page) break;
      for (const key of page.damagedKeys) {
        damaged.add(key);
        this.#deps.onDamaged(rangeId, key);
      }
      read += page.rows;
      after = page.lastRow;
      await pause(this.#deps.clock, restMs, signal);
    }
    return read;
  }
}
