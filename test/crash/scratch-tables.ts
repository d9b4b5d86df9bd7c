import { type JsonDocument, WireClient } from '../support/fault/wire-client.ts';
import type { DocumentModel } from './document-model.ts';
import { Violation } from './load-client.ts';

const documents: Record<string, JsonDocument> = Object.fromEntries(
  ['!a', 'm', '~z'].map((key) => [key, { owner: -1, n: 0, words: 'kelp', unique: `s${key.charCodeAt(0)}` }]),
);

/**
 * A client that creates tables, fills them, gives them an index, and drops it
 * all again while others write: the catalog under load.
 */
export class ScratchTables {
  readonly #model: DocumentModel;
  #serial = 0;
  /** Table whose creation, filling or dropping was not answered. */
  #inDoubt: string | undefined;

  constructor(model: DocumentModel) {
    this.#model = model;
  }

  async run(base: string, stop: AbortSignal): Promise<void> {
    const wire = new WireClient(base);
    while (!stop.aborted) {
      this.#serial += 1;
      const table = `scratch-${this.#serial}`;
      this.#inDoubt = table;
      const created = await this.#sure(wire.send('POST', `/db/v1/tables/${table}`, { num_shards: 2 }), [200, 201]);
      const filled = created && (await this.#sure(wire.batch(table, { inserts: documents }), [201]));
      const path = `/db/v1/tables/${table}/indexes/extra`;
      const indexed = filled && (await this.#sure(wire.send('POST', path, { type: 'full_text' }), [201]));
      const forgotten = indexed && (await this.#sure(wire.send('DELETE', path), [204]));
      const dropped = forgotten && (await this.#sure(wire.send('DELETE', `/db/v1/tables/${table}`), [204]));
      if (!dropped) return;
      this.#inDoubt = undefined;
    }
  }

  /** A table in doubt is there with all its documents or none, or not there at all; it is dropped for good. */
  async resolve(base: string): Promise<void> {
    const table = this.#inDoubt;
    if (table === undefined) return;
    const wire = new WireClient(base);
    const answer = await wire.send('GET', `/db/v1/tables/${table}`);
    if (answer.status === 200) {
      const found = await wire.scan(table);
      const whole = found.size === 0 || Bun.deepEquals(Object.fromEntries(found), documents);
      if (!whole) throw new Violation(`${table} has a part of its batch: ${JSON.stringify([...found.keys()])}`);
      await wire.expect(204, 'DELETE', `/db/v1/tables/${table}`);
    }
    this.#model.dropTable(table);
    this.#inDoubt = undefined;
  }

  async #sure(sent: Promise<{ status: number; body: unknown }>, wanted: number[]): Promise<boolean> {
    const answer = await sent.catch(() => undefined);
    if (!answer || answer.status >= 500) return false;
    if (wanted.includes(answer.status)) return true;
    throw new Violation(`a scratch table request was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  }
}
