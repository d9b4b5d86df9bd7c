import { ServiceError } from '../../protocol/service-error.ts';
import { isRefusedFile, probeDisk } from '../storage-error.ts';
import type { RangeId } from '../write-request.ts';
import type { RedoRunner } from './redo-runner.ts';
import type { WritableRange, WritableRanges } from './writable-ranges.ts';

interface RefusedDeps {
  readonly ranges: WritableRanges;
  readonly redo: RedoRunner;
  /** Translates a failure for callers. */
  report(error: unknown, path: string): unknown;
  /** Without a reason: the range takes writes again. */
  onChange(rangeId: RangeId, reason?: string): void;
}

/**
 * The ranges whose files refuse writes while the disk takes others, as at a limit of the sizes of files: from the first write
 * that fails until a look at the file finds that it may grow again.
 */
export class RefusedRanges {
  readonly #deps: RefusedDeps;
  readonly #reasons = new Map<RangeId, string>();

  constructor(deps: RefusedDeps) {
    this.#deps = deps;
  }

  get isEmpty(): boolean {
    return this.#reasons.size === 0;
  }

  /** A write to the range has failed. Returns the error for callers. */
  note({ file: { rangeId }, path }: WritableRange, error: unknown): unknown {
    const reported = this.#deps.report(error, path);
    if (!isRefusedFile(error, reported) || this.#reasons.get(rangeId) === reported.message) return reported;
    this.#reasons.set(rangeId, reported.message);
    this.#deps.onChange(rangeId, reported.message);
    return reported;
  }

  /** Looks which of them take writes again. Throws what condemns the writer, and what is a fault of ours. */
  tryAll(): void {
    for (const rangeId of [...this.#reasons.keys()]) {
      try {
        this.#try(rangeId);
      } catch (error) {
        const reported = this.#deps.report(error, this.#deps.ranges.find(rangeId)?.path ?? '');
        if (!(reported instanceof ServiceError) || reported.code === 'storage_failed') throw reported;
        // Of a table that was dropped.
        if (reported.code === 'table_not_found') this.#reasons.delete(rangeId);
      }
    }
  }

  #try(rangeId: RangeId): void {
    const { ranges, redo } = this.#deps;
    redo.catchUp(rangeId);
    const { file, wal, path } = ranges.get(rangeId);
    probeDisk(path);
    wal.checkPlace();
    file.tryWrite();
    wal.wrote(0, 1);
    this.#reasons.delete(rangeId);
    this.#deps.onChange(rangeId);
  }
}
