import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';

// This file runs on a bare checkout: nothing outside the runtime and this folder may be imported.

/**
 * A file that says what something was built from: the SHA-256 of the sources' names and contents, then one of their sizes
 * and times of change. While the second matches, the sources need not be read, which a start would have to wait for.
 */
export class SourceStamp {
  readonly #file: string;
  readonly #sources: () => readonly string[];
  readonly #salt: string;

  /** `sources` lists paths in a fixed order; `salt` is whatever else the result depends on. */
  constructor(file: string, sources: () => readonly string[], salt = '') {
    this.#file = file;
    this.#sources = sources;
    this.#salt = salt;
  }

  /** Whether the stamp was written for the sources as they are now. */
  isCurrent(): boolean {
    if (!existsSync(this.#file)) return false;
    const [contents, times] = readFileSync(this.#file, 'utf8').split('\n');
    if (times === this.#hashOfTimes()) return true;
    if (contents !== this.hashOfContents()) return false;
    this.write(contents);
    return true;
  }

  hashOfContents(): string {
    const hash = new Bun.CryptoHasher('sha256').update(this.#salt);
    for (const path of this.#sources())
      hash
        .update(`${this.#nameOf(path)}\0`)
        .update(readFileSync(path))
        .update('\0');
    return hash.digest('hex');
  }

  /** Stamps what was built from the contents that had this hash before the build began. */
  write(hashOfContents: string): void {
    // Sources that changed during the build keep their old hash, and the times of a moment that no longer is.
    const times = hashOfContents === this.hashOfContents() ? this.#hashOfTimes() : '';
    writeFileSync(this.#file, `${hashOfContents}\n${times}\n`);
  }

  #hashOfTimes(): string {
    const hash = new Bun.CryptoHasher('sha256').update(this.#salt);
    for (const path of this.#sources()) {
      const { size, mtimeMs } = statSync(path);
      hash.update(`${this.#nameOf(path)}\0${size}\0${mtimeMs}\0`);
    }
    return hash.digest('hex');
  }

  /** A checkout that was moved keeps its stamps. */
  #nameOf(path: string): string {
    return relative(dirname(this.#file), path);
  }
}
