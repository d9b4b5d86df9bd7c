import type { ObjectWriter } from '../stores/object-store.ts';
import type { ArchiveFile, BlockEntry } from './manifest.ts';

/** Uncompressed bytes of a block; the last of a file is shorter. */
const blockBytes = 4 * 1_024 * 1_024;
const compressionLevel = 3;
/** Blocks that are compressed or written while the next one fills. */
const pendingMax = 2;

/** Writes lines as a file of zstd frames, each with a block of the text; a long line goes on in the next block. */
export class BlockWriter {
  readonly #writer: ObjectWriter;
  readonly #hash = new Bun.CryptoHasher('sha256');
  readonly #blocks: BlockEntry[] = [];
  readonly #pending: Promise<void>[] = [];
  #block = new Uint8Array(blockBytes);
  #filled = 0;
  #bytes = 0;
  #written: Promise<void> = Promise.resolve();

  constructor(writer: ObjectWriter) {
    this.#writer = writer;
  }

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.byteLength; ) {
      const part = bytes.subarray(at, at + blockBytes - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.byteLength;
      at += part.byteLength;
      if (this.#filled === blockBytes) this.#seal();
    }
  }

  /** Waits until there is room for more. */
  async drain(): Promise<void> {
    while (this.#pending.length > pendingMax) await this.#pending.shift();
  }

  /** Durable when it resolves. */
  async finish(): Promise<Omit<ArchiveFile, 'name'>> {
    if (this.#filled > 0) this.#seal();
    await Promise.all(this.#pending);
    await this.#writer.close();
    return { bytes: this.#bytes, sha256: this.#hash.digest('hex'), blocks: this.#blocks };
  }

  async abort(): Promise<void> {
    await Promise.allSettled(this.#pending);
    await this.#writer.abort();
  }

  #seal(): void {
    const text = this.#block.subarray(0, this.#filled);
    this.#block = new Uint8Array(blockBytes);
    this.#filled = 0;
    const compressed = Bun.zstdCompress(text, { level: compressionLevel });
    const before = this.#written;
    const written = compressed.then(async (frame) => {
      await before;
      this.#hash.update(frame);
      this.#blocks.push({ bytes: frame.byteLength, size: text.byteLength, crc: Bun.hash.crc32(frame) });
      this.#bytes += frame.byteLength;
      await this.#writer.write(frame);
    });
    // What fails is thrown where it is waited for.
    written.catch(() => undefined);
    this.#written = written;
    this.#pending.push(written);
  }
}
