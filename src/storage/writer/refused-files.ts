import { ServiceError } from '../../protocol/service-error.ts';
import type { CatalogFile } from '../catalog/catalog-file.ts';
import { isRefusedFile, probeDisk } from '../storage-error.ts';
import type { RangeId, RefusedFile } from '../write-request.ts';
import type { RedoRunner } from './redo-runner.ts';
import type { WritableRange, WritableRanges } from './writable-ranges.ts';

interface RefusedDeps {
  readonly ranges: WritableRanges;
  readonly catalog: CatalogFile;
  readonly redo: RedoRunner;
  /** Translates a failure for callers. */
  report(error: unknown, path: string): unknown;
  /** Without a reason: the file takes writes again. */
  onChange(file: RefusedFile, reason?: string): void;
}

/**
 * The files that refuse writes while the disk takes others, as at a limit of the sizes of files: from the first write
 * that fails until a look at the file finds that it may grow again.
 */
export class RefusedFiles {
  readonly #deps: RefusedDeps;
  readonly #reasons = new Map<RefusedFile, string>();

  constructor(deps: RefusedDeps) {
    this.#deps = deps;
  }

  get isEmpty(): boolean {
    return this.#reasons.size === 0;
  }

  /** A write to the range has failed. Returns the error for callers. */
  note({ file: { rangeId }, path }: WritableRange, error: unknown): unknown {
    return this.#note(rangeId, path, error);
  }

  /** A change of the catalog has failed. Returns the error for callers. */
  noteCatalog(error: unknown): unknown {
    return this.#note('catalog', this.#deps.catalog.path, error);
  }

  #note(file: RefusedFile, path: string, error: unknown): unknown {
    const reported = this.#deps.report(error, path);
    if (!isRefusedFile(error, reported) || this.#reasons.get(file) === reported.message) return reported;
    this.#reasons.set(file, reported.message);
    this.#deps.onChange(file, reported.message);
    return reported;
  }

  /** Looks which of them take writes again. Throws what condemns the writer, and what is a fault of ours. */
  tryAll(): void {
    const { ranges, catalog, report } = this.#deps;
    for (const file of [...this.#reasons.keys()]) {
      try {
        if (file === 'catalog') this.#tryCatalog();
        else this.#try(file);
        this.#reasons.delete(file);
        this.#deps.onChange(file);
      } catch (error) {
        const reported = report(error, file === 'catalog' ? catalog.path : (ranges.find(file)?.path ?? ''));
        if (!(reported instanceof ServiceError) || reported.code === 'storage_failed') throw reported;
        // Of a table that was dropped.
        if (reported.code === 'table_not_found') this.#reasons.delete(file);
      }
    }
  }

  #tryCatalog(): void {
    const { catalog } = this.#deps;
    probeDisk(catalog.path);
    catalog.tryWrite();
  }

  #try(rangeId: RangeId): void {
    const { ranges, redo } = this.#deps;
    redo.catchUp(rangeId);
    const { file, wal, path } = ranges.get(rangeId);
    probeDisk(path);
    wal.checkPlace();
    file.tryWrite();
    wal.wrote(0, 1);
  }
}
