import { closeSync, fstatSync, openSync, rmSync, statfsSync, statSync, truncateSync } from 'node:fs';
import { randomBytes } from '../../lib/random-bytes.ts';
import { MiB } from '../../lib/units.ts';
import type { DataDirectory } from '../directory/data-directory.ts';
import { extendSynced } from '../directory/synced-file.ts';

/**
 * The writes that the disk takes at present. `full` and `read_only` hold from
 * the first write that fails to the next that works.
 */
export type DiskCondition = 'writable' | 'full' | 'read_only';

/** A disk with less than this free is full. */
const roomBytes = 4 * MiB;
/** Of the room of the disk, the share that may be taken at once to save time. */
const spareShare = 1 / 8;
/** One step of filling the reserve; each is synced, and writes wait for it. */
const stepBytes = 4 * MiB;
/** The share of the reserve that is spent at once. */
const spentShare = 1 / 16;

/**
 * The room of a data directory: whether its disk takes writes, and a reserve, a file that is cut when the disk is
 * full, so that what frees space (deletes, drops), committed writes and checkpoints can be finished. While a part of
 * it is spent, everything else is refused.
 */
export class DiskSpace {
  readonly #directory: DataDirectory;
  readonly #reserveBytes: number;
  readonly #onChange: (condition: DiskCondition) => void;
  #condition: DiskCondition = 'writable';
  #heldBytes: number;

  /** @param reserveBytes 0 for no reserve */
  constructor(directory: DataDirectory, reserveBytes: number, onChange: (condition: DiskCondition) => void) {
    this.#directory = directory;
    this.#reserveBytes = reserveBytes;
    this.#onChange = onChange;
    this.#heldBytes = statSync(directory.reserveFile, { throwIfNoEntry: false })?.size ?? 0;
    if (reserveBytes < this.#heldBytes) this.#remove();
  }

  get condition(): DiskCondition {
    return this.#condition;
  }

  /** The disk is full and the reserve is not whole: only writes that free space may use what is left. */
  get isSpent(): boolean {
    return this.#condition === 'full' && this.#heldBytes < this.#reserveBytes;
  }

  /** The reserve has yet to be filled. */
  get lacksReserve(): boolean {
    return this.#heldBytes < this.#reserveBytes;
  }

  /** A write failed or worked. */
  note(condition: DiskCondition): void {
    // A write that fits into the reserve's room says nothing about the disk.
    if (condition === this.#condition || (condition === 'writable' && this.isSpent)) return;
    this.#condition = condition;
    this.#onChange(condition);
  }

  /** Gives a part of the reserve back to the file system; false when there is none, or it does not take it. */
  spend(): boolean {
    const left = this.#heldBytes - Math.max(stepBytes, this.#reserveBytes * spentShare);
    return this.#spendDownTo(Math.max(0, Math.floor(left)));
  }

  #spendDownTo(left: number): boolean {
    if (this.#heldBytes === 0 || !(left > 0 ? this.#cut(left) : this.#remove())) return false;
    this.note('full');
    return true;
  }

  /** Before anything is opened: a full disk gets the reserve's room, so that recovery can write. */
  spendWhenFull(): boolean {
    return this.freeBytes() < roomBytes && this.#spendDownTo(0);
  }

  /** The disk has room again, for the reserve as well. */
  hasRoom(): boolean {
    return this.freeBytes() >= roomBytes + this.#reserveBytes - this.#heldBytes;
  }

  freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.#directory.root);
    return bavail * bsize;
  }

  /** Bytes that may be taken at once to save time. */
  spareBytes(): number {
    return this.#condition === 'writable' ? this.freeBytes() * spareShare : 0;
  }

  /** After `hasRoom`, and after a write has worked. */
  recover(): void {
    this.#condition = 'writable';
    this.#onChange('writable');
  }

  /** Fills a part of the reserve. True when there is more to fill, and room for it. */
  fillStep(): boolean {
    if (!this.lacksReserve || !this.hasRoom()) return false;
    const descriptor = openSync(this.#directory.reserveFile, 'a', 0o600);
    try {
      this.#heldBytes = this.#extend(descriptor, fstatSync(descriptor).size);
    } finally {
      closeSync(descriptor);
    }
    return this.lacksReserve;
  }

  #extend(descriptor: number, size: number): number {
    const bytes = Math.min(stepBytes, this.#reserveBytes - size);
    // Random bytes, because a file system that compresses would hold no room with zeros.
    extendSynced(descriptor, size, randomBytes(bytes));
    return size + bytes;
  }

  #cut(left: number): boolean {
    if (!works(() => truncateSync(this.#directory.reserveFile, left))) return this.#remove();
    this.#heldBytes = left;
    return true;
  }

  #remove(): boolean {
    const { reserveFile } = this.#directory;
    // A full file system that copies on write may have no room for a removal; what is cut gives it some.
    const given = [() => rmSync(reserveFile, { force: true }), () => truncateSync(reserveFile)].some(works);
    if (given) this.#heldBytes = 0;
    return given;
  }
}

function works(change: () => void): boolean {
  try {
    change();
    return true;
  } catch {
    return false;
  }
}
