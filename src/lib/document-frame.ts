import { assert } from './assert.ts';

/**
 * The document frame: many row operations in one byte string, from the native scan through the storage writer to the
 * indexes. Little-endian; offsets count from the start of the frame; its twin is `native/base/src/frame.rs`.
 *
 *     header 32 bytes   0 magic u32, 4 version u16, 6 flags u16, 8 row count u32, 12 heap offset u32, 16 heap bytes u32
 *     row    48 bytes   0 kind u8, 1 flags u8, 2 written ms (bits 32 to 47) u16, 4 ordinal u32, 8 sequence u64,
 *                       16 TTL base ms i64, 24 key offset u32, 28 key bytes u32, 32 body offset u32, 36 body bytes u32,
 *                       40 crc u32, 44 written ms (bits 0 to 31) u32
 *     heap              keys (UTF-8) and bodies (UTF-8 JSON objects; of part rows as in `parts/part-body.ts`)
 */
const magic = 0x31464453;
const version = 1;
const headerBytes = 32;
const rowBytes = 48;
const twoTo32 = 2 ** 32;

/**
 * A part row belongs to the document of its key and takes a sequence of its own. A state row sets, or with an empty body
 * removes, what the server notes about its own work under the row's key: it has no ordinal and no sequence.
 */
export const rowKind = { put: 1, delete: 2, transform: 3, partPut: 4, partDelete: 5, state: 6 } as const;
export type RowKind = (typeof rowKind)[keyof typeof rowKind];

/** Row flag: the ordinal is new in this generation. */
export const rowOrdinalIsNew = 1;
/** Row flag of a feed: the document is as it was; one of the parts behind it has changed. */
export const rowIsAgain = 2;
/** Row flag of a list of edges on its way to the writer: declared edges that the document has stay. */
export const rowKeepsDeclared = 4;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Where the fields of a row lie, reading and writing in place. Rows are counted from 0. */
class RowTable {
  protected view: DataView;

  constructor(view: DataView) {
    this.view = view;
  }

  protected at(row: number): number {
    return row * rowBytes;
  }

  setFlags(row: number, flags: number): void {
    this.view.setUint8(this.at(row) + 1, flags);
  }

  setOrdinal(row: number, ordinal: number): void {
    this.view.setUint32(this.at(row) + 4, ordinal, true);
  }

  /** Sequences stay below 2^53. */
  setSequence(row: number, sequence: number): void {
    writeInteger(this.view, this.at(row) + 8, sequence);
  }

  /** Milliseconds since 1970, or 0 for "never expires". */
  setTtlBaseMs(row: number, ttlBaseMs: number): void {
    writeInteger(this.view, this.at(row) + 16, ttlBaseMs);
  }

  /** Of a part row: it applies only while its document has this sequence. */
  setRequiredSequence(row: number, sequence: number): void {
    this.setTtlBaseMs(row, sequence);
  }

  /** When the document was written, milliseconds since 1970; 0 where its body says so itself. */
  setWrittenMs(row: number, writtenMs: number): void {
    const at = this.at(row);
    this.view.setUint32(at + 44, writtenMs % twoTo32, true);
    this.view.setUint16(at + 2, Math.min(Math.floor(writtenMs / twoTo32), 0xffff), true);
  }
}

/** A frame whose header has been checked. Accessors read the bytes; nothing is kept per row. */
export class DocumentFrame extends RowTable {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly rowCount: number;

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    super(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    assert(bytes.byteLength >= headerBytes && this.view.getUint32(0, true) === magic, 'not a document frame');
    assert(this.view.getUint16(4, true) === version, 'a document frame of unknown version');
    this.bytes = bytes;
    this.rowCount = this.view.getUint32(8, true);
    const heapOffset = this.view.getUint32(12, true);
    assert(
      heapOffset === headerBytes + rowBytes * this.rowCount &&
        heapOffset + this.view.getUint32(16, true) === bytes.byteLength,
      'a document frame whose lengths do not add up',
    );
  }

  protected override at(row: number): number {
    assert(row >= 0 && row < this.rowCount, 'a row outside the document frame');
    return headerBytes + row * rowBytes;
  }

  kind(row: number): RowKind {
    const kind = this.view.getUint8(this.at(row));
    assert(kind >= rowKind.put && kind <= rowKind.state, 'a document frame with a row of unknown kind');
    return kind as RowKind;
  }

  flags(row: number): number {
    return this.view.getUint8(this.at(row) + 1);
  }

  ordinal(row: number): number {
    return this.view.getUint32(this.at(row) + 4, true);
  }

  sequence(row: number): number {
    return readInteger(this.view, this.at(row) + 8);
  }

  /** Milliseconds since 1970, or 0 when the row never expires. */
  ttlBaseMs(row: number): number {
    return readInteger(this.view, this.at(row) + 16);
  }

  /** When the document was written, milliseconds since 1970; 0 where its body says so itself (`_timestamp`). */
  writtenMs(row: number): number {
    const at = this.at(row);
    return this.view.getUint16(at + 2, true) * twoTo32 + this.view.getUint32(at + 44, true);
  }

  key(row: number): string {
    return decoder.decode(this.keyBytes(row));
  }

  /** The key's UTF-8 bytes, a view into the frame. */
  keyBytes(row: number): Uint8Array<ArrayBuffer> {
    return this.slice(this.at(row) + 24);
  }

  /** The body, a view into the frame; empty for deletes. */
  body(row: number): Uint8Array<ArrayBuffer> {
    return this.slice(this.at(row) + 32);
  }

  bodyBytes(row: number): number {
    return this.view.getUint32(this.at(row) + 36, true);
  }

  /** Of a part row: it applies only while its document has this sequence; 0 for the document put before it. */
  requiredSequence(row: number): number {
    return this.ttlBaseMs(row);
  }

  /** The part id of a part row, as `parts/part-body.ts` reads it. */
  partId(row: number): number {
    return this.view.getUint32(this.view.getUint32(this.at(row) + 32, true), true);
  }

  /** CRC-32 (IEEE) of the body, as `Bun.hash.crc32` computes it. */
  crc(row: number): number {
    return this.view.getUint32(this.at(row) + 40, true);
  }

  /** The row's 48 bytes, for copying it into another frame. */
  record(row: number): Uint8Array<ArrayBuffer> {
    const at = this.at(row);
    return this.bytes.subarray(at, at + rowBytes);
  }

  private slice(at: number): Uint8Array<ArrayBuffer> {
    const offset = this.view.getUint32(at, true);
    const end = offset + this.view.getUint32(at + 4, true);
    assert(offset >= headerBytes && end <= this.bytes.byteLength, 'a document frame row points outside the frame');
    return this.bytes.subarray(offset, end);
  }
}

export function readFrame(bytes: Uint8Array<ArrayBuffer>): DocumentFrame {
  return new DocumentFrame(bytes);
}

/** Builds a frame row by row, in two growing buffers; used for feed pages and post-images. */
export class FrameBuilder extends RowTable {
  private rows: Uint8Array<ArrayBuffer>;
  private heap: Uint8Array<ArrayBuffer>;
  private heapLength = 0;
  private count = 0;

  /** The arguments are guesses that save copying. */
  constructor(expectedRows = 16, expectedHeapBytes = 16 * 1024) {
    const rows = new Uint8Array(Math.max(1, expectedRows) * rowBytes);
    super(new DataView(rows.buffer));
    this.rows = rows;
    this.heap = new Uint8Array(Math.max(64, expectedHeapBytes));
  }

  get rowCount(): number {
    return this.count;
  }

  /** Bytes of the frame as it stands. */
  get byteLength(): number {
    return headerBytes + this.count * rowBytes + this.heapLength;
  }

  /**
   * Appends a row and answers its number; flags, ordinal, sequence and times are 0 until set.
   * `crc` is computed from the body when the caller does not know it.
   */
  append(kind: RowKind, key: string | Uint8Array, body: Uint8Array, crc: number = Bun.hash.crc32(body)): number {
    const row = this.addRow();
    const at = this.at(row);
    this.view.setUint8(at, kind);
    this.placeKey(at, key);
    this.placeBody(at, body);
    this.view.setUint32(at + 40, crc, true);
    return row;
  }

  /** Appends a copy of a row of another frame, all its fields included; answers its number. */
  appendRow(frame: DocumentFrame, row: number): number {
    const copy = this.addRow();
    const at = this.at(copy);
    this.rows.set(frame.record(row), at);
    this.placeKey(at, frame.keyBytes(row));
    this.placeBody(at, frame.body(row));
    return copy;
  }

  /** Takes all rows out; the buffers stay for the next ones. */
  clear(): void {
    this.rows.fill(0, 0, this.count * rowBytes);
    this.count = 0;
    this.heapLength = 0;
  }

  /** The frame's bytes, a copy; the builder must not be used afterwards but for `clear`. */
  finish(): Uint8Array<ArrayBuffer> {
    const heapOffset = headerBytes + this.count * rowBytes;
    const bytes = new Uint8Array(heapOffset + this.heapLength);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, magic, true);
    view.setUint16(4, version, true);
    view.setUint32(8, this.count, true);
    view.setUint32(12, heapOffset, true);
    view.setUint32(16, this.heapLength, true);
    bytes.set(this.rows.subarray(0, this.count * rowBytes), headerBytes);
    bytes.set(this.heap.subarray(0, this.heapLength), heapOffset);
    for (let row = 0; row < this.count; row += 1) {
      // Until now offsets counted from the start of the heap.
      for (const field of [24, 32]) {
        const at = headerBytes + row * rowBytes + field;
        view.setUint32(at, view.getUint32(at, true) + heapOffset, true);
      }
    }
    return bytes;
  }

  private addRow(): number {
    const row = this.count;
    if ((row + 1) * rowBytes > this.rows.byteLength) {
      const grown = new Uint8Array(this.rows.byteLength * 2);
      grown.set(this.rows);
      this.rows = grown;
      this.view = new DataView(grown.buffer);
    }
    this.count += 1;
    return row;
  }

  private placeKey(at: number, key: string | Uint8Array): void {
    this.view.setUint32(at + 24, this.heapLength, true);
    if (typeof key === 'string') {
      this.reserve(key.length * 3);
      const { written } = encoder.encodeInto(key, this.heap.subarray(this.heapLength));
      this.view.setUint32(at + 28, written, true);
      this.heapLength += written;
    } else {
      this.view.setUint32(at + 28, key.byteLength, true);
      this.place(key);
    }
  }

  private placeBody(at: number, body: Uint8Array): void {
    this.view.setUint32(at + 32, this.heapLength, true);
    this.view.setUint32(at + 36, body.byteLength, true);
    this.place(body);
  }

  private place(bytes: Uint8Array): void {
    this.reserve(bytes.byteLength);
    this.heap.set(bytes, this.heapLength);
    this.heapLength += bytes.byteLength;
  }

  private reserve(bytes: number): void {
    const needed = this.heapLength + bytes;
    if (needed <= this.heap.byteLength) return;
    assert(needed < twoTo32, 'a document frame beyond 4 GiB');
    const grown = new Uint8Array(Math.max(needed, this.heap.byteLength * 2));
    grown.set(this.heap.subarray(0, this.heapLength));
    this.heap = grown;
  }
}

/** A 64-bit two's complement integer whose value a double holds exactly. */
function readInteger(view: DataView, at: number): number {
  return view.getInt32(at + 4, true) * twoTo32 + view.getUint32(at, true);
}

function writeInteger(view: DataView, at: number, value: number): void {
  assert(Number.isSafeInteger(value), 'an integer beyond 2^53 in a document frame');
  view.setInt32(at + 4, Math.floor(value / twoTo32), true);
  view.setUint32(at, value >>> 0, true);
}
