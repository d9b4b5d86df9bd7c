import { ftruncateSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A part of a file. */
export interface Region {
  readonly at: number;
  readonly bytes: number;
}

/** Most bytes that wait in one file; what is more goes another way. */
const fileBytesMax = 256 * 1024 * 1024;
/** A file that nothing waits in is kept up to this length: pages that are there already are written twice as fast. */
const keptBytesMax = 16 * 1024 * 1024;
const memoryDirectory = '/dev/shm';

/**
 * Opens an empty file without a name, in memory where the system has a place for that, for one process to write and
 * another that inherits it to read. It is gone with the last of them, however they end. Undefined where the system has none.
 */
export function openMemoryFile(): number | undefined {
  for (const directory of [memoryDirectory, tmpdir()]) {
    const path = join(directory, `sundew-${crypto.randomUUID()}`);
    try {
      const file = openSync(path, 'wx+', 0o600);
      unlinkSync(path);
      return file;
    } catch {
      // Not every system has the first, and not every one lets us write there.
    }
  }
  return undefined;
}

/** The writing side: gives out regions, and takes them back once they were read. */
export class RegionWriter {
  readonly #file: number;
  /** Regions that wait to be read, in the order of their places. */
  readonly #waiting: Region[] = [];
  #length = 0;

  constructor(file: number) {
    this.#file = file;
  }

  /** Undefined where the file has no room for them. */
  write(bytes: Uint8Array): Region | undefined {
    const region = { at: this.#placeFor(bytes.byteLength), bytes: bytes.byteLength };
    const end = region.at + region.bytes;
    if (end > fileBytesMax) return undefined;
    this.#length = Math.max(this.#length, end);
    try {
      for (let at = region.at; at < end; ) at += writeSync(this.#file, bytes, at - region.at, end - at, at);
    } catch {
      // Memory files have a bound of the system's too; what was written so far must not stay.
      this.#shrink();
      return undefined;
    }
    const behind = this.#waiting.findIndex(({ at }) => at > region.at);
    this.#waiting.splice(behind < 0 ? this.#waiting.length : behind, 0, region);
    return region;
  }

  /** Takes back the region that begins at `at`. */
  free(at: number): void {
    const index = this.#waiting.findIndex((region) => region.at === at);
    if (index < 0) return;
    this.#waiting.splice(index, 1);
    this.#shrink();
  }

  #shrink(): void {
    if (this.#waiting.length > 0 || this.#length <= keptBytesMax) return;
    ftruncateSync(this.#file, 0);
    this.#length = 0;
  }

  /** The first gap that is large enough. */
  #placeFor(bytes: number): number {
    let place = 0;
    for (const region of this.#waiting) {
      if (region.at - place >= bytes) break;
      place = region.at + region.bytes;
    }
    return place;
  }
}

/** The bytes of a region. Throws where the file is shorter. */
export function readRegion(file: number, { at, bytes }: Region): Uint8Array<ArrayBuffer> {
  if (bytes > fileBytesMax) throw new Error('a region is longer than its file may be');
  const into = new Uint8Array(bytes);
  for (let done = 0; done < bytes; ) {
    const read = readSync(file, into, done, bytes - done, at + done);
    if (read === 0) throw new Error('a region lies outside of its file');
    done += read;
  }
  return into;
}
