/** A file that keeps pages which it has read or written in memory. */
interface CachedFile {
  dropPages(): void;
}

/** Bounds how many files keep pages in memory: the one used longest ago drops its own, and reads them again when needed. */
export class PageCaches {
  readonly #filesMax: number;
  /** In order of last use. */
  readonly #files = new Set<CachedFile>();

  constructor(filesMax: number) {
    this.#filesMax = filesMax;
  }

  /** The file is about to be read or written. */
  use(file: CachedFile): void {
    this.#files.delete(file);
    this.#files.add(file);
    if (this.#files.size <= this.#filesMax) return;
    const [oldest] = this.#files;
    if (!oldest) return;
    this.#files.delete(oldest);
    oldest.dropPages();
  }

  /** The file is closed. */
  forget(file: CachedFile): void {
    this.#files.delete(file);
  }
}
