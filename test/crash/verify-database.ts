import { compareKeys } from '../../src/lib/key-order.ts';
import { type JsonDocument, WireClient, withoutServerMembers } from '../support/fault/wire-client.ts';
import type { DocumentModel } from './document-model.ts';
import { type LoadClient, type LoadedTable, Violation, vectorIndex, vocabulary } from './load-client.ts';

/** Finds out what became of the operations that were not answered: wholly there, or not at all. */
export async function resolveDoubts(base: string, clients: LoadClient[]): Promise<void> {
  const wire = new WireClient(base);
  for (const client of clients) {
    const doubt = client.inDoubt;
    if (!doubt) continue;
    const found = await Promise.all(
      doubt.effects.map(async ({ table, key }) => {
        const read = await wire.lookup(table, key, '*,_embeddings');
        return read && withoutServerMembers(read.document);
      }),
    );
    const happened = doubt.effects.every(({ after }, i) => same(found[i], after));
    const absent = doubt.effects.every(({ before }, i) => same(found[i], before));
    if (!happened && !absent) {
      throw new Violation(`an unanswered ${doubt.what} is there in part: ${describe(doubt.effects, found)}`);
    }
    client.resolve(happened);
  }
}

/** Documents, counts and search results are what the model says. */
export async function verifyDatabase(
  base: string,
  model: DocumentModel,
  tables: LoadedTable[],
  staleWords: string[],
): Promise<void> {
  const wire = new WireClient(base);
  await publishEverything(wire, model, tables);
  const listed = (await wire.expect(200, 'GET', '/db/v1/tables')).body as { name: string }[];
  equal('the list of tables', listed.map(({ name }) => name).sort(), model.tables);
  const reported = await wire.reportedDocuments();
  for (const { name } of tables) {
    const expected = model.documents(name);
    verifyScan(name, await wire.scan(name, { fields: ['*', '_embeddings'] }), expected);
    equal(`count of ${name}`, await wire.count(name), expected.size);
    equal(`reported documents of ${name}`, reported.get(name) ?? 0, expected.size);
    for (const word of vocabulary) {
      const wanted = [...expected].filter(([, document]) => String(document.words).split(' ').includes(word));
      const keys = wanted.map(([key]) => key).sort();
      equal(`documents of ${name} with "${word}"`, await search(wire, name, 'words', word), keys);
    }
    const withVectors = [...expected].filter(([, document]) => '_embeddings' in document);
    equal(`documents of ${name} with vectors`, await searchVectors(wire, name), withVectors.map(([key]) => key).sort());
    for (const word of staleWords.slice(-5)) {
      equal(`documents of ${name} with the overwritten "${word}"`, await search(wire, name, 'unique', word), []);
    }
  }
}

/** A write to every range that waits for every index: all that was written before is visible after it. */
async function publishEverything(wire: WireClient, model: DocumentModel, tables: LoadedTable[]): Promise<void> {
  for (const { name, prefixes } of tables) {
    const marker: JsonDocument = { words: 'marker', unique: 'marker' };
    const inserts = Object.fromEntries(prefixes.map((prefix) => [`${prefix}marker`, marker]));
    const answer = await wire.batch(name, { inserts, sync_level: 'full_index' });
    equal('a write that waits for every index', answer.status, 201);
    for (const key of Object.keys(inserts)) model.apply([{ table: name, key, before: undefined, after: marker }]);
  }
}

async function search(wire: WireClient, table: string, field: string, word: string): Promise<string[]> {
  const found = await wire.query({ table, full_text_search: { field, match: word }, fields: ['n'], limit: 10_000 });
  return found.hits.map(({ _id }) => _id).sort();
}

/** Keys of all documents that have a vector. */
async function searchVectors(wire: WireClient, table: string): Promise<string[]> {
  const found = await wire.query({ table, embeddings: { [vectorIndex]: [0, 0] }, fields: ['n'], limit: 10_000 });
  return found.hits.map(({ _id }) => _id).sort();
}

function verifyScan(
  table: string,
  found: Map<string, JsonDocument>,
  expected: ReadonlyMap<string, JsonDocument>,
): void {
  const keys = [...expected.keys()].sort(compareKeys);
  equal(`keys of ${table} in order`, [...found.keys()], keys);
  for (const [key, document] of expected) equal(`document ${key} of ${table}`, found.get(key), document);
}

function same(found: JsonDocument | undefined, expected: JsonDocument | undefined): boolean {
  return Bun.deepEquals(found, expected, true);
}

function equal(what: string, found: unknown, expected: unknown): void {
  if (Bun.deepEquals(found, expected)) return;
  if (Array.isArray(found) && Array.isArray(expected)) {
    const missing = expected.filter((item) => !found.includes(item));
    const extra = found.filter((item) => !expected.includes(item));
    throw new Violation(`${what}: missing ${JSON.stringify(missing)}, unexpected ${JSON.stringify(extra)}`);
  }
  throw new Violation(`${what}: found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
}

function describe(effects: { table: string; key: string }[], found: (JsonDocument | undefined)[]): string {
  return JSON.stringify(effects.map((effect, i) => ({ ...effect, found: found[i] ?? null })));
}
