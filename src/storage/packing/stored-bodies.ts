import type { Database, Statement } from 'bun:sqlite';
import { TokenDictionary } from './token-dictionary.ts';
import { tokenBytesMax } from './token-trie.ts';

/** A larger body is stored as it is: it fills pages of its own, and to pack it would hold up the writer. */
export const packedBytesMax = 256 * 1_024;

/** A body as its row has it. */
interface StoredBody {
  body: Uint8Array<ArrayBuffer>;
  /** Bytes of the body that is packed in it; null where it is not packed. */
  rawBytes: number | null;
}

/**
 * Bodies of one range's documents, by one connection. A packed one begins with the id of its dictionary (u8), behind which are
 * the codes. A dictionary is read once: it is written before the first body that needs it and never changed.
 */
export class StoredBodies {
  readonly #find: Statement;
  readonly #dictionaries = new Map<number, TokenDictionary | undefined>();

  constructor(database: Database) {
    this.#find = database.prepare('SELECT crc, tokens FROM dictionaries WHERE id = ?');
  }

  /**
   * The body as it was written. One that cannot be unpacked is returned as it is stored, so that it fails the comparison with
   * its checksum as any damaged body does.
   */
  unpacked({ body, rawBytes }: StoredBody): Uint8Array<ArrayBuffer> {
    if (rawBytes === null) return body;
    // Before anything is allocated for it: a file may say what it likes.
    if (rawBytes < 0 || rawBytes > packedBytesMax || rawBytes > body.byteLength * tokenBytesMax) return body;
    const raw = new Uint8Array(rawBytes);
    return this.dictionary(body[0] ?? 0)?.unpack(body, 1, raw) ? raw : body;
  }

  /** Undefined for one that is not there, or is damaged. */
  dictionary(id: number): TokenDictionary | undefined {
    if (this.#dictionaries.has(id)) return this.#dictionaries.get(id);
    const row = this.#find.get(id) as { crc: number; tokens: Uint8Array } | null;
    const dictionary = row && Bun.hash.crc32(row.tokens) === row.crc ? TokenDictionary.read(row.tokens) : undefined;
    // One that is missing may be there at a later instant.
    if (row) this.#dictionaries.set(id, dictionary);
    return dictionary;
  }

  close(): void {
    this.#find.finalize();
  }
}
