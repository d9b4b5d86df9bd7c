import { type DocumentFrame, readFrame, rowKind } from '../../lib/document-frame.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { CatalogFile, RedoRow } from '../catalog/catalog-file.ts';
import type { RangeWriter } from '../range/range-writer.ts';
import { type AppliedWrite, entryFormat, type RangeId, zeroCounts } from '../write-request.ts';
import { decodeRedo, type RedoPart } from './redo-record.ts';
import type { WritableRanges } from './writable-ranges.ts';

/** The findings of the start-up while it finished committed writes. */
interface RedoReport {
  redone: number;
  /** Ranges that could not take their part. */
  behind: RangeId[];
  warnings: string[];
}

/** Translates a failure for callers. */
type Translate = (error: unknown, path: string) => unknown;

/** Brings what the catalog has committed to the ranges that lack it: after a crash, or when a disk has room again. */
export class RedoRunner {
  readonly #ranges: WritableRanges;
  readonly #catalog: CatalogFile;
  readonly #translate: Translate;
  readonly #onRedone: (write: AppliedWrite) => void;
  /** Ranges that have yet to take what the catalog has committed for them. */
  readonly #behind = new Set<RangeId>();
  /** Of these, those whose damage no later attempt gets past. */
  readonly #damaged = new Set<RangeId>();

  /** `onRedone` hears of what a range has taken later than its write was answered. */
  constructor(
    ranges: WritableRanges,
    catalog: CatalogFile,
    translate: Translate,
    onRedone: (write: AppliedWrite) => void,
  ) {
    this.#ranges = ranges;
    this.#catalog = catalog;
    this.#translate = translate;
    this.#onRedone = onRedone;
  }

  /** Ranges that another attempt may bring up to date. */
  get isPending(): boolean {
    return this.#behind.size > this.#damaged.size;
  }

  /** The range could not take its part of a committed write; it takes no other before. */
  fellBehind(rangeId: RangeId): void {
    this.#behind.add(rangeId);
  }

  /** Finishes what a crash interrupted. A range that cannot take its part keeps its record; the others go on. */
  finishAtStart(): RedoReport {
    const warnings: string[] = [];
    let redone = 0;
    for (const record of this.#catalog.redo()) {
      let worked = false;
      for (const { rangeId } of decodeRedo(record.payload)) {
        try {
          if (this.#redo(record, rangeId)) worked = true;
        } catch (error) {
          warnings.push(`range ${rangeId} lacks a committed write: ${this.#noteFailure(rangeId, error).message}`);
        }
      }
      if (worked) redone += 1;
    }
    this.#forgetFinished();
    return { redone, behind: [...this.#behind], warnings };
  }

  /** Brings a range up to date before it takes a new write; throws when it cannot be. */
  catchUp(rangeId: RangeId): void {
    if (!this.#behind.has(rangeId)) return;
    for (const record of this.#catalog.redo()) this.#redo(record, rangeId);
    this.#behind.delete(rangeId);
    this.#damaged.delete(rangeId);
  }

  /** Tries every range that may be brought up to date. */
  catchUpAll(): void {
    for (const rangeId of this.#behind) {
      if (this.#damaged.has(rangeId)) continue;
      try {
        this.catchUp(rangeId);
      } catch (error) {
        this.#noteFailure(rangeId, error);
      }
    }
    this.#forgetFinished();
  }

  /** Throws what condemns the writer, and what is a fault of ours. */
  #noteFailure(rangeId: RangeId, error: unknown): ServiceError {
    const reported = this.#translate(error, this.#ranges.find(rangeId)?.path ?? this.#catalog.path);
    if (!(reported instanceof ServiceError) || reported.code === 'storage_failed') throw reported;
    this.#behind.add(rangeId);
    if (reported.code === 'data_corrupted') this.#damaged.add(rangeId);
    return reported;
  }

  /** Once no range is behind, every record has been applied. */
  #forgetFinished(): void {
    if (this.#behind.size > 0) return;
    const records = this.#catalog.redo();
    if (records.length === 0) return;
    try {
      this.#catalog.writeRedo(
        [],
        records.map(({ transactionId }) => transactionId),
      );
    } catch (error) {
      // Applying a record twice changes nothing: they can stay until the disk takes writes.
      const reported = this.#translate(error, this.#catalog.path);
      if (!(reported instanceof ServiceError) || reported.code === 'storage_failed') throw reported;
    }
  }

  /** Applies the range's part of a record where it lacks it; true when it did. */
  #redo(record: RedoRow, rangeId: RangeId): boolean {
    const part = decodeRedo(record.payload).find((each) => each.rangeId === rangeId);
    // A table that has been dropped since then needs nothing any more.
    if (!part || this.#catalog.queries.range(rangeId)?.generation !== part.generation) return false;
    const { file, wal } = this.#ranges.get(rangeId);
    if (file.state.transactionId >= record.transactionId) return false;
    const frame = readFrame(part.frame);
    const firstSequence = firstSequenceOf(frame) ?? file.state.nextSequence;
    wal.checkPlace();
    file.begin();
    try {
      file.applyImages(frame);
      if (part.answer) file.answers.keep(part.answer);
      file.state.entryIndex = part.entryIndex;
      file.state.transactionId = record.transactionId;
      file.commit();
    } catch (error) {
      file.rollback();
      throw error;
    }
    wal.wrote(part.frame.byteLength, 1);
    this.#onRedone(appliedLater(file, part, firstSequence));
    return true;
  }
}

/** Undefined when no row of the frame has a sequence. */
function firstSequenceOf(frame: DocumentFrame): number | undefined {
  for (let row = 0; row < frame.rowCount; row += 1) {
    if (frame.kind(row) !== rowKind.state) return frame.sequence(row);
  }
  return undefined;
}

function appliedLater(file: RangeWriter, part: RedoPart, firstSequence: number): AppliedWrite {
  const { documents, bytes, nextSequence } = file.state;
  const { rangeId, generation, entryIndex, frame } = part;
  return {
    rangeId,
    header: {
      format: entryFormat,
      kind: 'rows',
      rangeId,
      generation,
      epoch: 0,
      index: entryIndex,
      requestId: '',
      timeMs: 0,
    },
    counts: zeroCounts(),
    images: { frame, firstSequence, lastSequence: nextSequence - 1 },
    totals: { documents, bytes },
  };
}
