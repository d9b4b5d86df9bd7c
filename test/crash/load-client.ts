import type { SeededRandom } from '../support/fault/seeded-random.ts';
import {
  type Answer,
  type Batch,
  type JsonDocument,
  type Transform,
  WireClient,
} from '../support/fault/wire-client.ts';
import type { DocumentModel, Effect } from './document-model.ts';

/** A table under load, and for each of its ranges a key prefix that falls into it. */
export interface LoadedTable {
  name: string;
  prefixes: string[];
}

/** Words of the documents; each is searched for after every crash. */
export const vocabulary = ['amber', 'birch', 'cedar', 'dune', 'ember', 'fjord', 'grove', 'heath', 'islet', 'jade'];

/** The index of the vectors that some documents have. */
export const vectorIndex = 'place';
export const vectorIndexConfig = { type: 'embeddings', external: true, dimension: 2 };

/** The database did something that it promises not to do. */
export class Violation extends Error {}

interface Operation {
  what: string;
  effects: Effect[];
  send(wire: WireClient): Promise<Answer>;
  /** Answers with this status are the acknowledgement. */
  acknowledgedBy: number;
  check?(answer: Answer): void;
}

const keysPerClient = 40;

/**
 * One client: it owns its keys, sends one operation at a time, and moves the model on when the answer is there.
 * It ends with the operation whose outcome it does not know, or when it is told to stop.
 */
export class LoadClient {
  readonly #id: number;
  readonly #random: SeededRandom;
  readonly #tables: LoadedTable[];
  readonly #model: DocumentModel;
  #serial = 0;
  #acknowledged = 0;
  #inDoubt: Operation | undefined;
  /** Search words that no document may have any more. */
  readonly #stale: string[] = [];

  constructor(id: number, random: SeededRandom, tables: LoadedTable[], model: DocumentModel) {
    this.#id = id;
    this.#random = random;
    this.#tables = tables;
    this.#model = model;
  }

  get acknowledged(): number {
    return this.#acknowledged;
  }

  get inDoubt(): { what: string; effects: Effect[] } | undefined {
    return this.#inDoubt;
  }

  staleWords(): string[] {
    return this.#stale.splice(0);
  }

  /** The operation in doubt happened, or did not. */
  resolve(happened: boolean): void {
    if (happened && this.#inDoubt) this.#settle(this.#inDoubt);
    this.#inDoubt = undefined;
  }

  async run(base: string, stop: AbortSignal): Promise<void> {
    const wire = new WireClient(base);
    while (!stop.aborted) {
      const operation = await this.#next(wire).catch(() => undefined);
      if (!operation) return;
      this.#inDoubt = operation;
      const answer = await operation.send(wire).catch(() => undefined);
      if (!answer || answer.status >= 500) return;
      this.#inDoubt = undefined;
      if (answer.status !== operation.acknowledgedBy) {
        throw new Violation(`${operation.what} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
      }
      this.#settle(operation);
      operation.check?.(answer);
      this.#acknowledged += 1;
      if (operation.what === 'searchable') await this.#searchBack(wire, operation);
    }
  }

  #settle(operation: Operation): void {
    for (const { before, after } of operation.effects) {
      if (before && before.unique !== after?.unique) this.#stale.push(String(before.unique));
    }
    this.#model.apply(operation.effects);
  }

  async #next(wire: WireClient): Promise<Operation> {
    const dice = this.#random.next();
    const table = this.#random.pick(this.#tables);
    if (dice < 0.35) return this.#batch('batch', table, this.#random.between(1, 6));
    if (dice < 0.5) return this.#batch('searchable', table, this.#random.between(1, 4));
    if (dice < 0.6) return this.#batch('wide batch', table, 60);
    if (dice < 0.8) return this.#multiBatch();
    return this.#commit(wire);
  }

  #batch(what: string, table: LoadedTable, size: number): Operation {
    const { batch, effects } = this.#changes(table, size);
    if (what === 'searchable') batch.sync_level = 'full_text';
    return {
      what,
      effects,
      acknowledgedBy: 201,
      send: (wire) => wire.batch(table.name, batch),
      check: (answer) => expectInserted(answer.body as JsonDocument, batch),
    };
  }

  #multiBatch(): Operation {
    const parts = this.#tables.map((table) => ({ table, ...this.#changes(table, this.#random.between(1, 5)) }));
    const tables = Object.fromEntries(parts.map(({ table, batch }) => [table.name, batch]));
    return {
      what: 'batch of two tables',
      effects: parts.flatMap(({ effects }) => effects),
      acknowledgedBy: 201,
      send: (wire) => wire.multiBatch(tables),
    };
  }

  /** A commit whose read set holds; one in five reads something that is not so and must change nothing. */
  async #commit(wire: WireClient): Promise<Operation> {
    const parts = this.#tables.map((table) => ({ table, ...this.#changes(table, this.#random.between(1, 3)) }));
    const read = this.#random.pick(parts.flatMap(({ effects }) => effects));
    const version = (await wire.lookup(read.table, read.key))?.version ?? '0';
    const lie = this.#random.chance(0.2);
    const readSet = [{ table: read.table, key: read.key, version: lie ? String(Number(version) + 1) : version }];
    const tables = Object.fromEntries(parts.map(({ table, batch }) => [table.name, batch]));
    return {
      what: lie ? 'commit that must abort' : 'commit',
      effects: lie ? [] : parts.flatMap(({ effects }) => effects),
      acknowledgedBy: lie ? 409 : 200,
      send: (client) => client.commit(readSet, tables),
    };
  }

  /** Changes of `size` keys over all ranges of a table. */
  #changes(table: LoadedTable, size: number): { batch: Batch; effects: Effect[] } {
    const inserts: Record<string, JsonDocument> = {};
    const deletes: string[] = [];
    const transforms: Transform[] = [];
    const effects: Effect[] = [];
    const seen = new Set<string>();
    for (let i = 0; i < size; i += 1) {
      const key = `${this.#random.pick(table.prefixes)}c${this.#id}-${this.#random.between(1, keysPerClient)}`;
      if (seen.has(key)) continue;
      seen.add(key);
      const before = this.#model.get(table.name, key);
      const fresh = this.#fresh();
      const dice = this.#random.next();
      let after: JsonDocument | undefined;
      if (dice < 0.6 || effects.length === 0) {
        const document = { owner: this.#id, n: 0, ...fresh };
        const given = this.#vector();
        inserts[key] = given === undefined ? document : { ...document, _embeddings: { [vectorIndex]: given } };
        // An omitted vector stays, null deletes it.
        const embeddings = given === undefined ? before?._embeddings : given && { [vectorIndex]: given };
        after = embeddings ? { ...document, _embeddings: embeddings } : document;
      } else if (dice < 0.8) {
        transforms.push({ key, operations: changesOf(fresh), upsert: false });
        after = before && { ...before, ...fresh, n: Number(before.n) + 1 };
      } else deletes.push(key);
      effects.push({ table: table.name, key, before, after });
    }
    const batch: Batch = { inserts };
    if (deletes.length > 0) batch.deletes = deletes;
    if (transforms.length > 0) batch.transforms = transforms;
    return { batch, effects };
  }

  /** Half of the inserts bring a vector, some delete it. */
  #vector(): number[] | null | undefined {
    const dice = this.#random.next();
    if (dice < 0.5) return [this.#id, this.#serial];
    return dice < 0.65 ? null : undefined;
  }

  #fresh(): { words: string; unique: string } {
    this.#serial += 1;
    const words = Array.from({ length: this.#random.between(1, 3) }, () => this.#random.pick(vocabulary));
    return { words: words.join(' '), unique: `u${this.#id}v${this.#serial}` };
  }

  /** A write with `full_text` was answered: its documents are found at once, by their new words only. */
  async #searchBack(wire: WireClient, operation: Operation): Promise<void> {
    const effect = operation.effects.find(({ after }) => after !== undefined);
    if (!effect?.after) return;
    const query = { table: effect.table, full_text_search: { field: 'unique', match: String(effect.after.unique) } };
    const found = await wire.query(query).catch(() => undefined);
    if (!found) return;
    const ids = found.hits.map(({ _id }) => _id);
    if (ids.length !== 1 || ids[0] !== effect.key) {
      throw new Violation(`after a full_text write of ${effect.key} the search finds ${JSON.stringify(ids)}`);
    }
  }
}

function changesOf(fresh: { words: string; unique: string }): Transform['operations'] {
  return [
    { op: '$inc', path: '$.n', value: 1 },
    { op: '$set', path: '$.words', value: fresh.words },
    { op: '$set', path: '$.unique', value: fresh.unique },
  ];
}

function expectInserted(answer: JsonDocument, batch: Batch): void {
  const inserted = Object.keys(batch.inserts ?? {}).length;
  if (answer.status !== 'committed' || answer.inserted !== inserted) {
    throw new Violation(`a batch of ${inserted} inserts was answered ${JSON.stringify(answer)}`);
  }
}
