import type { ArchiveFile, BlockEntry } from '../archive/manifest.ts';

/** A block of a file as it lies in the archive. */
export interface PackedBlock extends BlockEntry {
  frame: Uint8Array<ArrayBuffer>;
}

/** The members of a file as a whole. */
export type PackedTotals = Pick<ArchiveFile, 'bytes' | 'sha256'>;

/** Uncompressed bytes of a block; the last of a file is shorter. */
export const blockBytes = 4 * 1_024 * 1_024;
/** Half of the work of level 3 for archives that are a few percent larger: a backup takes its time from requests. */
const compressionLevel = 2;
const encoder = new TextEncoder();
const newline = 0x0a;
const space = 0x20;

/** Packs bytes into zstd frames on the calling thread, each with a block of the text; a long line goes on in the next block. */
export class BlockPacker {
  readonly #hash = new Bun.CryptoHasher('sha256');
  readonly #block = Buffer.alloc(blockBytes);
  #filled = 0;
  #bytes = 0;
  #packed: PackedBlock[] = [];

  /** Blocks that are full and were not taken yet. */
  get hasBlocks(): boolean {
    return this.#packed.length > 0;
  }

  addText(text: string): void {
    // A character has at most three bytes; what fits is encoded where it belongs.
    if (text.length * 3 <= blockBytes - this.#filled) this.#filled += this.#block.write(text, this.#filled);
    else this.add(encoder.encode(text));
  }

  add(bytes: Uint8Array): void {
    if (bytes.byteLength < blockBytes - this.#filled) {
      this.#block.set(bytes, this.#filled);
      this.#filled += bytes.byteLength;
      return;
    }
    for (let at = 0; at < bytes.byteLength; ) {
      const part = bytes.subarray(at, at + blockBytes - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.byteLength;
      at += part.byteLength;
      if (this.#filled === blockBytes) this.#seal();
    }
  }

  /** A JSON text on one line: between tokens a line break says what a space says, and inside strings there is none. */
  addJson(text: Uint8Array): void {
    if (text.indexOf(newline) === -1) this.add(text);
    else this.add(text.map((byte) => (byte === newline ? space : byte)));
  }

  /** The full blocks since the last call. */
  take(): PackedBlock[] {
    const packed = this.#packed;
    this.#packed = [];
    return packed;
  }

  /** Closes the last block, which `take` then gives. */
  finish(): PackedTotals {
    if (this.#filled > 0) this.#seal();
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex') };
  }

  #seal(): void {
    const size = this.#filled;
    const packed = Bun.zstdCompressSync(this.#block.subarray(0, size), {
      level: compressionLevel,
    }) as Buffer<ArrayBuffer>;
    // A frame changes hands with its buffer, which has nothing else in it.
    const frame = packed.byteLength === packed.buffer.byteLength ? packed : new Uint8Array(packed);
    this.#filled = 0;
    this.#hash.update(frame);
    this.#bytes += frame.byteLength;
    this.#packed.push({ frame, bytes: frame.byteLength, size, crc: Bun.hash.crc32(frame) });
  }
}
