import type { Database } from 'bun:sqlite';
import { packedBytesMax, StoredBodies } from './stored-bodies.ts';
import { dictionaryOf, TokenDictionary } from './token-dictionary.ts';
import { TokenPacker } from './token-packer.ts';
import { trainTokens } from './token-training.ts';

/** A smaller body is stored as it is. */
const smallBytes = 32;
/** The first dictionary is made for this many bytes of a range; the next one whenever it has grown by `growth`. */
const firstBytes = 256 * 1_024;
const growth = 16;
/** An id is one byte of each body; growth alone leads no further than a dozen. */
const idMax = 255;
const sampleBytes = 512 * 1_024;
/** A range that has fewer bytes of documents, because the rest are parts, gets no dictionary yet. */
const sampleBytesMin = 64 * 1_024;
/** How many places of the range a sample is taken from, evenly by ordinals. */
const samplePlaces = 256;

/** How a body lies in its row. */
interface PackedBody {
  /** Valid until the next call. */
  stored: Uint8Array;
  /** As the row has it: null for a body that is not packed. */
  rawBytes: number | null;
}

/** The dictionary that a transaction wrote, until it has ended. */
interface NewDictionary {
  id: number;
  tokens: Uint8Array;
  isWritten: boolean;
}

/**
 * The writer's side of the dictionaries of one range. A dictionary is made of what the range holds when it has grown enough,
 * and is written with the first transaction that may use it. What is stored already stays as it is.
 */
export class BodyPacking {
  /** Whether bodies are packed from now on. */
  isOn = false;
  readonly bodies: StoredBodies;
  readonly #database: Database;
  /** Undefined until it is needed, null where there is no dictionary. */
  #newest: { id: number; packer: TokenPacker } | null | undefined;
  #new: NewDictionary | undefined;
  /** Bytes of the range at which the next dictionary is due; undefined until it is needed. */
  #dueBytes: number | undefined;
  #room = new Uint8Array(4 * 1_024);

  constructor(database: Database) {
    this.#database = database;
    this.bodies = new StoredBodies(database);
  }

  /** The transaction has begun: writes the next dictionary when the range, which has this many bytes and ordinals, wants one. */
  begun(bytes: number, nextOrdinal: number): void {
    if (!this.isOn) return;
    this.#dueBytes ??= firstBytes * growth ** this.#lastId();
    if (bytes < this.#dueBytes) return;
    const tokens = this.#new?.tokens ?? this.#train(nextOrdinal);
    // Mostly parts: it is looked at again when there is twice as much.
    if (!tokens) this.#dueBytes = 2 * bytes;
    else this.#write(this.#lastId() + 1, tokens);
  }

  committed(): void {
    if (!this.#new?.isWritten) return;
    this.#new = undefined;
    this.#dueBytes = undefined;
  }

  /** The next transaction writes the dictionary again. */
  rolledBack(): void {
    if (!this.#new?.isWritten) return;
    this.#new.isWritten = false;
    this.#newest = undefined;
  }

  /** A body as it is to be stored: packed where that saves an eighth. */
  pack(body: Uint8Array): PackedBody {
    const plain = { stored: body, rawBytes: null };
    const { byteLength } = body;
    if (!this.isOn || byteLength < smallBytes || byteLength > packedBytesMax) return plain;
    this.#newest ??= this.#load();
    if (this.#newest === null) return plain;
    if (this.#room.byteLength < byteLength) this.#room = new Uint8Array(2 * byteLength);
    this.#room[0] = this.#newest.id;
    const room = this.#room.subarray(0, byteLength - (byteLength >>> 3));
    const end = this.#newest.packer.pack(body, room, 1);
    return end === undefined ? plain : { stored: room.subarray(0, end), rawBytes: byteLength };
  }

  close(): void {
    this.bodies.close();
  }

  #lastId(): number {
    const query = this.#database.query('SELECT coalesce(max(id), 0) AS id FROM dictionaries');
    return (query.get() as { id: number }).id;
  }

  #load(): { id: number; packer: TokenPacker } | null {
    const id = this.#lastId();
    const dictionary = this.bodies.dictionary(id);
    return id <= idMax && dictionary?.hasAllBytes() ? { id, packer: new TokenPacker(dictionary) } : null;
  }

  #train(nextOrdinal: number): Uint8Array | undefined {
    const sample = this.#sample(nextOrdinal);
    const bytes = sample.reduce((sum, body) => sum + body.byteLength, 0);
    return bytes < sampleBytesMin ? undefined : dictionaryOf(trainTokens(sample));
  }

  #write(id: number, tokens: Uint8Array): void {
    const sql = 'INSERT INTO dictionaries (id, crc, tokens) VALUES (?, ?, ?)';
    this.#database.query(sql).run(id, Bun.hash.crc32(tokens), tokens);
    this.#new = { id, tokens, isWritten: true };
    const dictionary = TokenDictionary.read(tokens);
    this.#newest = dictionary ? { id, packer: new TokenPacker(dictionary) } : null;
  }

  /** Beginnings of bodies from all over the range. */
  #sample(nextOrdinal: number): Uint8Array[] {
    const rows = this.#database.query(
      'SELECT ordinal, body, raw_bytes AS rawBytes FROM documents WHERE ordinal >= ? ORDER BY ordinal',
    );
    const sample: Uint8Array[] = [];
    let read = 0;
    for (let place = 0; place < samplePlaces; place += 1) {
      const from = Math.max(read + 1, Math.floor((place * nextOrdinal) / samplePlaces));
      let left = sampleBytes / samplePlaces;
      for (const row of rows.iterate(from)) {
        const found = row as { ordinal: number; body: Uint8Array<ArrayBuffer>; rawBytes: number | null };
        const body = this.bodies.unpacked(found).subarray(0, left);
        sample.push(body);
        read = found.ordinal;
        left -= body.byteLength;
        if (left <= 0) break;
      }
    }
    return sample;
  }
}
