import { freeBytes } from '../../lib/free-bytes.ts';
import type { ObjectStore } from '../stores/object-store.ts';
import { lineBytesMax } from './archive-line.ts';
import { type ArchiveFile, type BlockEntry, blockBytesMax, corrupted } from './manifest.ts';
import { declaredSize } from './zstd-frame.ts';

/** Where a line begins: the number of its block, and the byte in the uncompressed block. */
export interface LinePosition {
  block: number;
  byte: number;
}

/** Lines that were read together. */
interface LinePage {
  lines: Buffer[];
  /** Where the line after each of them begins. */
  next: LinePosition[];
  /** Gives the memory of the lines back; they are gone then. */
  release(): void;
}

const newline = 0x0a;

/**
 * The blocks of a file, uncompressed, from a block on. What stands before it is read as well, for the checksum of the file.
 * Nothing is believed of the file: every block is compared with the manifest before it is decompressed. Throws
 * `backup_corrupted`, at the latest behind the last block.
 */
export async function* readBlocks(
  store: ObjectStore,
  file: ArchiveFile,
  from = 0,
): AsyncGenerator<{ number: number; bytes: Uint8Array }> {
  const hash = new Bun.CryptoHasher('sha256');
  const last = file.blocks.length - 1;
  let at = 0;
  for (const [number, entry] of file.blocks.entries()) {
    // One byte more than the last block has shows whether the file goes on behind it.
    const bytes = await store.read(file.name, at, at + entry.bytes + (number === last ? 1 : 0));
    if (bytes === undefined) throw corrupted(file.name, 'is missing');
    checkBlock(file.name, bytes, entry);
    hash.update(bytes);
    at += entry.bytes;
    const text = number >= from ? await decompress(file.name, bytes, entry) : undefined;
    freeBytes(bytes);
    if (text) yield { number, bytes: text };
  }
  if (hash.digest('hex') !== file.sha256) throw corrupted(file.name, 'does not match its checksum');
}

/** The lines of a range's file from a position on, a page for each block. Throws as `readBlocks`. */
export async function* readLines(
  store: ObjectStore,
  file: ArchiveFile,
  from: LinePosition = { block: 0, byte: 0 },
): AsyncGenerator<LinePage, void> {
  // The pieces of a line that goes on in the next block.
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const { number, bytes } of readBlocks(store, file, from.block)) {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const skipped = number === from.block ? from.byte : 0;
    const { lines, ends } = split(text, skipped);
    const [first] = ends;
    if (first !== undefined) {
      if (restBytes > 0) lines[0] = Buffer.concat([...rest, text.subarray(skipped, first - 1)]);
      [rest, restBytes] = [[], 0];
    }
    // A copy: the text is released with its lines.
    const begun = Buffer.from(text.subarray(ends.at(-1) ?? skipped));
    rest.push(begun);
    restBytes += begun.byteLength;
    if (restBytes > lineBytesMax) throw corrupted(file.name, 'has a line that is too long');
    // A line that ends in this block has the next one behind it.
    const next = ends.map((end) => positionIn(number, end, text.byteLength));
    if (lines.length > 0) yield { lines, next, release: () => freeBytes(bytes) };
    else freeBytes(bytes);
  }
  if (restBytes > 0) throw corrupted(file.name, 'ends in the middle of a line');
}

function checkBlock(name: string, bytes: Uint8Array, { bytes: length, size, crc }: BlockEntry): void {
  if (bytes.byteLength > length) throw corrupted(name, 'is longer than its manifest says');
  if (bytes.byteLength < length) throw corrupted(name, 'is too short');
  if (Bun.hash.crc32(bytes) !== crc) throw corrupted(name, 'has a block that does not match its checksum');
  const declared = declaredSize(bytes);
  if (declared === undefined || declared > blockBytesMax || declared !== size) {
    throw corrupted(name, 'has a block of another size than it says');
  }
}

async function decompress(name: string, bytes: Uint8Array<ArrayBuffer>, { size }: BlockEntry): Promise<Uint8Array> {
  try {
    const text = await Bun.zstdDecompress(bytes);
    if (text.byteLength === size) return text;
  } catch {
    // Damaged in a way that the checksum does not tell.
  }
  throw corrupted(name, 'has a block that cannot be decompressed');
}

function positionIn(block: number, byte: number, blockSize: number): LinePosition {
  return byte < blockSize ? { block, byte } : { block: block + 1, byte: 0 };
}

/** The lines that end in the text, from `start` on, and behind which byte each ends. */
function split(text: Buffer, start: number): { lines: Buffer[]; ends: number[] } {
  const lines: Buffer[] = [];
  const ends: number[] = [];
  let used = start;
  for (let end = text.indexOf(newline, used); end !== -1; end = text.indexOf(newline, used)) {
    lines.push(text.subarray(used, end));
    used = end + 1;
    ends.push(used);
  }
  return { lines, ends };
}
