import { must } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import { readAhead } from '../../lib/concurrency/read-ahead.ts';
import { FrameBuilder, rowKind } from '../../lib/document-frame.ts';
import { failpoint } from '../../lib/failpoint.ts';
import { removedTargetsBytes } from '../../lib/parts/edge-notes.ts';
import { partDeleteBody, partIdOfBody } from '../../lib/parts/part-body.ts';
import type { RangeLog } from '../../replication/range-log.ts';
import type { Table } from '../../tables/table.ts';
import type { ArchivedDocument, LiveOrdinals } from '../archive/archive-line.ts';
import { type LinePosition, readLines } from '../archive/archive-reader.ts';
import type { ArchiveFile } from '../archive/manifest.ts';
import { readLine } from '../archive/read-line.ts';
import type { ObjectStore } from '../stores/object-store.ts';

/** Where the load of a range stands: what came before the position is in the range. */
interface LoadCursor extends LinePosition {
  file: number;
}

interface RangeSource {
  readonly store: ObjectStore;
  readonly files: readonly ArchiveFile[];
  /** Ids of parts in the files go up to it. */
  readonly lastPartId: number;
  /** Those of them that the table has. */
  readonly wanted: ReadonlySet<number>;
}

interface LoadDeps {
  readonly log: RangeLog;
  readonly clock: Clock;
}

/** The note of a range in which the load keeps its cursor; it is removed with the last rows. */
const cursorKey = 'restore';
const frameBytes = 1_024 * 1_024;
const frameRows = 2_048;
const liveRows = 1_024;
/** Bytes that wait in memory for an index before the load waits, which is faster than any. */
const queueBytesMax = 16 * 1_024 * 1_024;
/**
 * Bytes of rows behind which what their lines have left in JavaScript is collected, in some 20 ms. By itself a
 * collection comes later: it is paced by the heap, and much of this are buffers, which lie outside.
 */
const collectedBytes = 16 * 1_024 * 1_024;
const encoder = new TextEncoder();
const noBytes = new Uint8Array(0);

/** Brings the lines of a range's files into a range of a staged table; goes on where an earlier attempt has ended. */
export class RangeLoad {
  readonly #deps: LoadDeps;
  readonly #table: Table;
  readonly #rangeId: number;
  readonly #source: RangeSource;
  readonly #signal: AbortSignal;
  readonly #frame = new FrameBuilder(frameRows, frameBytes);
  /** Behind the last line that is in the frame or the range. */
  #cursor: LoadCursor = { file: 0, block: 0, byte: 0 };
  /** The last entry on its way into the log: while it is synced, the next one is made. */
  #appended: Promise<unknown> = Promise.resolve();
  /** Of rows since the last collection. */
  #uncollectedBytes = 0;

  constructor(deps: LoadDeps, table: Table, rangeId: number, source: RangeSource, signal: AbortSignal) {
    this.#deps = deps;
    this.#table = table;
    this.#rangeId = rangeId;
    this.#source = source;
    this.#signal = signal;
  }

  /** Throws `backup_corrupted`, and what the location and the storage throw. */
  async run(): Promise<void> {
    try {
      await this.#load();
      await this.#appended;
    } finally {
      // A process that goes on from here may drop the table.
      await this.#appended.catch(() => undefined);
    }
  }

  async #load(): Promise<void> {
    const { files, store, lastPartId } = this.#source;
    const from = await this.#storedCursor();
    this.#cursor = from;
    for (const [number, file] of files.entries()) {
      if (number < from.file) continue;
      const start = number === from.file ? from : undefined;
      for await (const { lines, next, release } of readAhead(readLines(store, file, start))) {
        this.#signal.throwIfAborted();
        for (const [at, line] of lines.entries()) {
          const read = readLine(line, lastPartId);
          if (read.kind === 'live') await this.#takeLive(read.live);
          else this.#take(read);
          this.#cursor = { file: number, ...must(next[at], 'a position behind each line') };
          if (this.#isFull) await this.#flush();
        }
        release();
        failpoint('restore.after-block');
      }
    }
    await this.#flush();
  }

  async #storedCursor(): Promise<LoadCursor> {
    using lease = await this.#table.leaseForUpkeep(this.#rangeId);
    const note = lease.range.stored.notes.get(cursorKey);
    return note ? (JSON.parse(Buffer.from(note).toString()) as LoadCursor) : { file: 0, block: 0, byte: 0 };
  }

  async #takeLive(live: LiveOrdinals): Promise<void> {
    await this.#flush();
    await this.#appended;
    await this.#keepOnly(live);
  }

  #take(line: Exclude<ReturnType<typeof readLine>, { kind: 'live' }>): void {
    if (line.kind === 'document') this.#put(line.document);
    else if (line.kind === 'removed') {
      this.#frame.append(rowKind.state, line.note, removedTargetsBytes(line.removed));
    } else this.#frame.setOrdinal(this.#frame.append(rowKind.delete, noBytes, noBytes), line.ordinal);
  }

  #put({ ordinal, key, body, ttlBaseMs, writtenMs, parts }: ArchivedDocument): void {
    const frame = this.#frame;
    const row = frame.append(rowKind.put, key, body);
    frame.setOrdinal(row, ordinal);
    frame.setTtlBaseMs(row, ttlBaseMs);
    frame.setWrittenMs(row, writtenMs);
    for (const part of parts) {
      if (this.#source.wanted.has(partIdOfBody(part))) frame.append(rowKind.partPut, key, part);
    }
  }

  /** Removes what has gone since the base: of the ordinals from `from` to `to` all that are not listed. */
  async #keepOnly({ part, from, to, ordinals }: LiveOrdinals): Promise<void> {
    if (part !== undefined && !this.#source.wanted.has(part)) return;
    const live = new Set(ordinals);
    for (let after = from - 1, more = true; more; ) {
      const page = await this.#ordinals(part, after);
      for (const ordinal of page) {
        if (ordinal > to || live.has(ordinal)) continue;
        const row =
          part === undefined
            ? this.#frame.append(rowKind.delete, noBytes, noBytes)
            : this.#frame.append(rowKind.partDelete, noBytes, partDeleteBody(part));
        this.#frame.setOrdinal(row, ordinal);
      }
      await this.#flush();
      await this.#appended;
      after = page.at(-1) ?? to;
      more = page.length === liveRows && after < to;
    }
  }

  async #ordinals(part: number | undefined, after: number): Promise<number[]> {
    using lease = await this.#table.leaseForUpkeep(this.#rangeId);
    const { documents, parts } = lease.range.stored;
    return part === undefined ? documents.ordinalsAfter(after, liveRows) : parts.ordinalsAfter(part, after, liveRows);
  }

  get #isFull(): boolean {
    return this.#frame.rowCount >= frameRows || this.#frame.byteLength >= frameBytes;
  }

  /**
   * The rows so far as one entry of the log, with the cursor behind the last line that is whole in them: a line is not taken
   * twice, because one of an earlier time may not fit what later ones have made of its document.
   */
  async #flush(): Promise<void> {
    if (this.#frame.rowCount === 0) return;
    this.#frame.append(rowKind.state, cursorKey, encoder.encode(JSON.stringify(this.#cursor)));
    await this.#keepUp();
    const timeMs = this.#deps.clock.nowMs();
    const frame = this.#frame.finish();
    this.#frame.clear();
    this.#collect(frame.byteLength);
    await this.#appended;
    failpoint('restore.before-entry');
    this.#appended = this.#deps.log.append({
      writes: [{ rangeId: this.#rangeId, frame, keepsOrdinals: true }],
      requestId: 'restore',
      timeMs,
      timestamp: new Date(timeMs).toISOString(),
    });
    // A failure is thrown where the result is awaited.
    this.#appended.catch(() => undefined);
  }

  #collect(bytes: number): void {
    this.#uncollectedBytes += bytes;
    if (this.#uncollectedBytes < collectedBytes) return;
    this.#uncollectedBytes = 0;
    Bun.gc(true);
  }

  /** Waits for indexes that are far behind. */
  async #keepUp(): Promise<void> {
    using lease = await this.#table.leaseForUpkeep(this.#rangeId);
    await lease.range.whenKeepsUp(this.#signal, queueBytesMax);
    this.#signal.throwIfAborted();
  }
}

/** Takes the cursor of a load out of a range. */
export function endOfLoad(): Uint8Array<ArrayBuffer> {
  const frame = new FrameBuilder();
  frame.append(rowKind.state, cursorKey, noBytes);
  return frame.finish();
}
