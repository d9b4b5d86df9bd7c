import { closeSync, openSync, readSync } from 'node:fs';

/** The state of the frames of a write-ahead log before SQLite reads them. */
type WalFindings =
  /** No log, or nothing in it. */
  | { state: 'empty' }
  /** Whole transactions only. */
  | { state: 'whole'; transactions: number }
  /** The log ends in the middle of a transaction; SQLite will leave it out, rightly: it was never acknowledged. */
  | { state: 'torn'; transactions: number }
  /** A bad frame with a whole transaction behind it; SQLite would silently drop that one, too. */
  | { state: 'damaged'; damagedAtByte: number };

const headerBytes = 32;
const frameHeaderBytes = 24;
const magic = 0x377f0682;
/** Used when the header itself is damaged; all files of ours have it. */
const pageBytesDefault = 4_096;
const chunkFrames = 64;

type Checksum = readonly [number, number];

interface Frame {
  saltMatches: boolean;
  /** Last frame of a transaction. */
  isCommit: boolean;
  stored: Checksum;
  /** Checksum of the frame's bytes continues the stored one of the frame before. */
  continues: boolean;
}

/**
 * Walks the log at `path` (sqlite.org/fileformat2.html, "The Write-Ahead Log"). Every frame's checksum continues its
 * predecessor's, so frames behind a bad one are checked against the checksum that is stored before them. Damage in
 * the last transaction cannot be told from a write that a crash cut short: only one transaction is ever unsynced, so
 * damage is certain when a whole transaction begins behind the bad frame's.
 */
export function inspectWal(path: string): WalFindings {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { state: 'empty' };
    throw error;
  }
  try {
    return walk(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function walk(descriptor: number): WalFindings {
  const header = Buffer.alloc(headerBytes);
  const read = readSync(descriptor, header, 0, headerBytes, 0);
  if (read < headerBytes || header.every((byte) => byte === 0)) return { state: 'empty' };
  const littleEndian = (header.readUInt32BE(0) & 1) === 0;
  const stored: Checksum = [header.readUInt32BE(24), header.readUInt32BE(28)];
  const headerHolds =
    (header.readUInt32BE(0) & ~1) === magic &&
    sameChecksum(checksum([0, 0], header.subarray(0, 24), littleEndian), stored);

  let transactions = 0;
  let openFrames = false;
  let index = 0;
  /** First frame that breaks the chain. */
  let broken = headerHolds ? undefined : 0;
  /** A frame behind the break belongs to this log, not to what lay in the file before. */
  let brokenFrames = false;
  /** Behind the break: some frame ended a transaction, and all frames since then hold. */
  let wholeSinceCommit = false;
  for (const frame of frames(descriptor, header, headerHolds ? stored : undefined, littleEndian)) {
    const holds = frame.saltMatches && frame.continues;
    if (broken === undefined && holds) {
      if (frame.isCommit) transactions += 1;
      openFrames = !frame.isCommit;
    } else {
      broken ??= index;
      brokenFrames ||= frame.saltMatches;
      if (wholeSinceCommit && holds && frame.isCommit) {
        return { state: 'damaged', damagedAtByte: headerHolds ? headerBytes + broken * frameBytesOf(header) : 0 };
      }
      wholeSinceCommit = (frame.saltMatches && frame.isCommit) || (wholeSinceCommit && holds);
    }
    index += 1;
  }
  if (openFrames || brokenFrames) return { state: 'torn', transactions };
  return transactions === 0 ? { state: 'empty' } : { state: 'whole', transactions };
}

function pageBytesOf(header: Buffer): number {
  const size = header.readUInt32BE(8);
  return size >= 512 && size <= 65_536 && (size & (size - 1)) === 0 ? size : pageBytesDefault;
}

function frameBytesOf(header: Buffer): number {
  return frameHeaderBytes + pageBytesOf(header);
}

/** All frames that the file has room for, in order. `seed` undefined: the header is not trusted. */
function* frames(
  descriptor: number,
  header: Buffer,
  seed: Checksum | undefined,
  littleEndian: boolean,
): Generator<Frame> {
  const frameBytes = frameBytesOf(header);
  const chunk = Buffer.alloc(frameBytes * chunkFrames);
  let salts = seed === undefined ? undefined : header.subarray(16, 24);
  let before: Checksum = seed ?? [0, 0];
  for (let position = headerBytes; ; ) {
    const read = readSync(descriptor, chunk, 0, chunk.byteLength, position);
    const whole = Math.floor(read / frameBytes);
    for (let at = 0; at < whole * frameBytes; at += frameBytes) {
      const frame = chunk.subarray(at, at + frameBytes);
      salts ??= Buffer.from(frame.subarray(8, 16));
      const stored: Checksum = [frame.readUInt32BE(16), frame.readUInt32BE(20)];
      const saltMatches = frame.subarray(8, 16).equals(salts);
      let continues = false;
      if (saltMatches) {
        const head = checksum(before, frame.subarray(0, 8), littleEndian);
        continues = sameChecksum(checksum(head, frame.subarray(frameHeaderBytes), littleEndian), stored);
      }
      yield { saltMatches, isCommit: frame.readUInt32BE(4) !== 0, stored, continues };
      before = stored;
    }
    if (whole < chunkFrames) {
      const rest = chunk.subarray(whole * frameBytes, read);
      if (startsFrame(rest, salts)) yield { saltMatches: true, isCommit: false, stored: before, continues: false };
      return;
    }
    position += whole * frameBytes;
  }
}

/** The file ends inside a frame of this log; zeros are space that was held ahead. */
function startsFrame(rest: Buffer, salts: Buffer | undefined): boolean {
  if (rest.every((byte) => byte === 0)) return false;
  return rest.byteLength < 16 || salts === undefined || rest.subarray(8, 16).equals(salts);
}

function checksum([first, second]: Checksum, bytes: Buffer, littleEndian: boolean): Checksum {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let a = first;
  let b = second;
  for (let at = 0; at < bytes.byteLength; at += 8) {
    a = (a + view.getUint32(at, littleEndian) + b) >>> 0;
    b = (b + view.getUint32(at + 4, littleEndian) + a) >>> 0;
  }
  return [a, b];
}

function sameChecksum(left: Checksum, right: Checksum): boolean {
  return left[0] === right[0] && left[1] === right[1];
}
