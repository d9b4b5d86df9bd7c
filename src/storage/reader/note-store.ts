import type { Database, Statement } from 'bun:sqlite';
import { type ReadSource, reading } from '../storage-error.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The server's notes about its own work on one range (`range_state`), read on the calling thread. */
export class NoteStore {
  readonly #source: ReadSource;
  readonly #byKey: Statement;
  readonly #within: Statement;

  constructor(database: Database, source: ReadSource) {
    this.#source = source;
    this.#byKey = database.prepare('SELECT value FROM range_state WHERE key = ?');
    this.#within = database.prepare(
      'SELECT key, value FROM range_state WHERE key > ? AND key < ? ORDER BY key LIMIT ?',
    );
  }

  get(key: string): Uint8Array | undefined {
    const row = reading(this.#source, () => this.#byKey.get(encoder.encode(key))) as { value: Uint8Array } | null;
    return row?.value;
  }

  /** Notes whose keys begin with `prefix`, after the key `after`, in key order, at most `rowsMax`. */
  within(prefix: string, rowsMax: number, after = ''): { key: string; value: Uint8Array }[] {
    const from = encoder.encode(after > prefix ? after : prefix);
    // No UTF-8 has the byte 0xff.
    const to = Buffer.concat([encoder.encode(prefix), Uint8Array.of(0xff)]);
    const rows = reading(this.#source, () => this.#within.all(from, to, rowsMax)) as {
      key: Uint8Array;
      value: Uint8Array;
    }[];
    return rows.map(({ key, value }) => ({ key: decoder.decode(key), value }));
  }

  close(): void {
    for (const statement of [this.#byKey, this.#within]) statement.finalize();
  }
}
