import { afterAll, beforeAll, expect, test } from 'bun:test';
import { ServiceError } from '../../src/protocol/service-error.ts';
import type { Database } from '../../src/server/database/open-database.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/**
 * Random writes to relational tables that name each other, beside plain maps: what is refused, what follows a deletion, and
 * what is stored then, also after the database was opened again, and after many writes at a time.
 */

type OnDelete = 'restrict' | 'cascade' | 'set_null';
type Row = Record<string, string | number>;
type State = Record<string, Record<string, Row>>;
interface Change {
  inserts: Record<string, Row>;
  deletes: string[];
}

const references: Record<string, Record<string, { table: string; on_delete: OnDelete }>> = {
  authors: { boss: { table: 'authors', on_delete: 'restrict' } },
  books: {
    author: { table: 'authors', on_delete: 'cascade' },
    editor: { table: 'authors', on_delete: 'set_null' },
    sequel: { table: 'books', on_delete: 'cascade' },
  },
  loans: { book: { table: 'books', on_delete: 'restrict' }, reader: { table: 'authors', on_delete: 'cascade' } },
};
const uniques: Record<string, string[]> = { authors: ['email'], books: ['isbn'], loans: [] };
const names = Object.keys(references);
// Every range has some of them.
const keys = ['0', '5', 'A', 'K', 'a', 'h', 'p', 'z', '~'];
const rounds = 600;
const directory = new TemporaryDirectory();
const seed = runSeed();
const random = new SeededRandom(seed);
let database: Database;
let state: State = { authors: {}, books: {}, loans: {} };

function columnsOf(table: string): string[] {
  return [...Object.keys(references[table] ?? {}), ...(uniques[table] ?? [])];
}

function randomRow(table: string): Row {
  const row: Row = {};
  for (const [column, { table: target }] of Object.entries(references[table] ?? {})) {
    const known = Object.keys(state[target] ?? {});
    if (!random.chance(0.5)) continue;
    row[column] = known.length > 0 && random.chance(0.8) ? random.pick(known) : random.pick(keys);
  }
  for (const column of uniques[table] ?? []) {
    if (random.chance(0.6)) row[column] = column === 'isbn' ? random.between(0, 30) : `mail${random.between(0, 30)}`;
  }
  return row;
}

function randomChange(): Record<string, Change> {
  const tables = names.filter(() => random.chance(0.5));
  const chosen = tables.length > 0 ? tables : [random.pick(names)];
  const changes = chosen.map((table) => {
    const change: Change = { inserts: {}, deletes: [] };
    for (const key of keys) {
      if (random.chance(0.12)) change.inserts[key] = randomRow(table);
      else if (random.chance(0.06)) change.deletes.push(key);
    }
    if (Object.keys(change.inserts).length + change.deletes.length === 0) change.deletes.push(random.pick(keys));
    return [table, change] as const;
  });
  return Object.fromEntries(changes);
}

/** The rows after a change; undefined where it breaks a rule. */
function changed(before: State, changes: Record<string, Change>): State | undefined {
  const after = structuredClone(before);
  const removed: [string, string][] = [];
  const written = new Set<string>();
  for (const [table, { inserts, deletes }] of Object.entries(changes)) {
    const rows = after[table] ?? {};
    for (const [key, row] of Object.entries(inserts)) {
      rows[key] = { ...row };
      written.add(`${table} ${key}`);
    }
    for (const key of deletes) {
      if (rows[key]) removed.push([table, key]);
      delete rows[key];
    }
  }
  for (const [table, key] of removed) {
    for (const { from, column, on_delete, target } of allReferences()) {
      if (target !== table || on_delete === 'restrict') continue;
      for (const [name, row] of Object.entries(after[from] ?? {})) {
        if (row[column] !== key) continue;
        if (written.has(`${from} ${name}`)) return undefined;
        if (on_delete === 'set_null') delete row[column];
        else {
          delete after[from]?.[name];
          removed.push([from, name]);
        }
      }
    }
  }
  return brokenRule(after) === undefined ? after : undefined;
}

function* allReferences() {
  for (const [from, columns] of Object.entries(references)) {
    for (const [column, { table: target, on_delete }] of Object.entries(columns))
      yield { from, column, target, on_delete };
  }
}

function brokenRule(rows: State): string | undefined {
  for (const { from, column, target } of allReferences()) {
    for (const [key, row] of Object.entries(rows[from] ?? {})) {
      const value = row[column];
      if (value !== undefined && !rows[target]?.[String(value)]) return `${from}.${column} of ${key}: ${value}`;
    }
  }
  for (const [table, columns] of Object.entries(uniques)) {
    for (const column of columns) {
      const values = Object.values(rows[table] ?? {}).flatMap((row) => row[column] ?? []);
      if (new Set(values).size < values.length) return `${table}.${column} is not unique`;
    }
  }
  return undefined;
}

async function write(tables: Record<string, Change>): Promise<'written' | 'refused'> {
  try {
    await database.services.writes.multiBatch(bodyOf({ tables }), testCaller());
    return 'written';
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'constraint_violation') return 'refused';
    throw error;
  }
}

/** By SQL, which reads through the indexes of columns, and by a scan. */
async function stored(): Promise<State> {
  const found: State = {};
  for (const table of names) {
    const columns = columnsOf(table);
    const sql = `SELECT _id, ${columns.join(', ')} FROM ${table}`;
    const { rows } = await database.services.sql.run({ sql }, testCaller());
    const entries = (JSON.parse(rows) as (string | number | null)[][]).map(([key, ...values]) => {
      const members = columns.flatMap((column, at) => (values[at] === null ? [] : [[column, values[at]]]));
      return [String(key), Object.fromEntries(members) as Row];
    });
    found[table] = Object.fromEntries(entries);
    const scanned: string[] = [];
    for await (const page of await database.services.documents.scan(table, {}, testCaller())) {
      scanned.push(...page.map((line) => (JSON.parse(line) as { _id: string })._id));
    }
    expect(scanned.sort()).toEqual(Object.keys(found[table] ?? {}).sort());
  }
  return found;
}

beforeAll(async () => {
  database = await openTestDatabase(directory.path);
  for (const table of names) {
    const named = Object.entries(references[table] ?? {}).map(([column, each]) => [
      column,
      { type: 'string', references: each },
    ]);
    const unique = (uniques[table] ?? []).map((column) => [
      column,
      { type: column === 'isbn' ? 'integer' : 'string', unique: true },
    ]);
    const properties = Object.fromEntries([...named, ...unique]);
    const schema = {
      storage_mode: 'relational',
      document_schemas: { row: { schema: { type: 'object', properties } } },
    };
    await database.services.tables.create(table, { num_shards: 3, schema } as object, testCaller());
  }
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

test('a write is refused, and followed by others, exactly as its rules say', async () => {
  const counts = { written: 0, refused: 0 };
  for (let round = 0; round < rounds; round += 1) {
    const changes = randomChange();
    const expected = changed(state, changes);
    const outcome = await write(changes);
    expect({ seed, round, changes, outcome }).toEqual({
      seed,
      round,
      changes,
      outcome: expected ? 'written' : 'refused',
    });
    counts[outcome] += 1;
    state = expected ?? state;
    if (round % 100 === 99) {
      await database.close();
      database = await openTestDatabase(directory.path);
    }
    if (round % 20 === 19) expect({ seed, round, state: await stored() }).toEqual({ seed, round, state });
  }
  // Neither of the two is the rule.
  expect(Math.min(counts.written, counts.refused)).toBeGreaterThan(rounds / 10);
}, 120_000);

test('many writes at a time leave no row that breaks a rule', async () => {
  for (let round = 0; round < 30; round += 1) {
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => write(randomChange())));
    expect(outcomes).toHaveLength(8);
    state = await stored();
    expect({ seed, round, broken: brokenRule(state) }).toEqual({ seed, round, broken: undefined });
  }
}, 120_000);
