import type { JsonDocument } from '../support/fault/wire-client.ts';

/** One document before and after an operation; undefined is absent. */
export interface Effect {
  table: string;
  key: string;
  before: JsonDocument | undefined;
  after: JsonDocument | undefined;
}

/** The state that the database must have: plain maps, moved on only by what was acknowledged. */
export class DocumentModel {
  readonly #tables = new Map<string, Map<string, JsonDocument>>();

  get tables(): string[] {
    return [...this.#tables.keys()].sort();
  }

  addTable(table: string): void {
    this.#tables.set(table, new Map());
  }

  dropTable(table: string): void {
    this.#tables.delete(table);
  }

  has(table: string): boolean {
    return this.#tables.has(table);
  }

  documents(table: string): ReadonlyMap<string, JsonDocument> {
    const documents = this.#tables.get(table);
    if (!documents) throw new Error(`the model has no table ${table}`);
    return documents;
  }

  get(table: string, key: string): JsonDocument | undefined {
    return this.documents(table).get(key);
  }

  apply(effects: readonly Effect[]): void {
    for (const { table, key, after } of effects) {
      const documents = this.#tables.get(table);
      if (!documents) throw new Error(`the model has no table ${table}`);
      if (after === undefined) documents.delete(key);
      else documents.set(key, after);
    }
  }
}
