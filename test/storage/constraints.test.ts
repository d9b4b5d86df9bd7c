import { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import type { TableRecord } from '../../src/storage/catalog/catalog-records.ts';
import type { ConstrainedTable } from '../../src/storage/constrained-table.ts';
import type { Storage } from '../../src/storage/open-storage.ts';
import type { RangeWrite } from '../../src/storage/write-request.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import {
  createTable,
  documentOf,
  failure,
  frameOf,
  group,
  openTestStorage,
  temporaryDirectory,
} from './storage-fixture.ts';

setDefaultTimeout(120_000);

/**
 * The rules of relational tables as the writer keeps them, beside SQLite with the same rules: what it refuses is refused, and
 * what it leaves is left, whatever follows whom over however many ranges.
 */

const seed = runSeed();
const rounds = Number(process.env.SUNDEW_CONSTRAINT_ROUNDS ?? 300);
const onDeletes = ['restrict', 'cascade', 'set_null'] as const;
type OnDelete = (typeof onDeletes)[number];

interface Write {
  table: string;
  puts: Record<string, Record<string, unknown>>;
  deletes: string[];
}

const names = ['authors', 'books', 'reviews'];
const actions = { restrict: 'NO ACTION', cascade: 'CASCADE', set_null: 'SET NULL' };

/** Books name authors, reviews name books and other reviews. */
function oracle(ofBook: OnDelete, ofReview: OnDelete): Database {
  const database = new Database(':memory:', { strict: true });
  const names = (table: string, action: OnDelete) =>
    `TEXT REFERENCES ${table}(id) ON DELETE ${actions[action]} DEFERRABLE INITIALLY DEFERRED`;
  database.run('PRAGMA foreign_keys = ON');
  database.run('CREATE TABLE authors (id TEXT PRIMARY KEY, email TEXT, n INTEGER)');
  database.run(`CREATE TABLE books (id TEXT PRIMARY KEY, email TEXT, author ${names('authors', ofBook)})`);
  database.run(
    `CREATE TABLE reviews (id TEXT PRIMARY KEY, book ${names('books', ofReview)}, answers ${names('reviews', 'cascade')})`,
  );
  return database;
}

const uniqueOf: Record<string, string[]> = { authors: ['email', 'n'], books: ['email'], reviews: [] };

/** False: SQLite refuses it. */
function applyTo(database: Database, writes: readonly Write[]): boolean {
  database.run('BEGIN');
  try {
    for (const { table, puts } of writes) {
      for (const [id, document] of Object.entries(puts)) {
        const columns = (database.query(`PRAGMA table_info(${table})`).all() as { name: string }[]).map(
          ({ name }) => name,
        );
        const values = columns.map((name) => (name === 'id' ? id : ((document[name] as string) ?? null)));
        const updates = columns.slice(1).map((name) => `${name} = excluded.${name}`);
        const marks = columns.map(() => '?').join(', ');
        database
          .query(`INSERT INTO ${table} VALUES (${marks}) ON CONFLICT (id) DO UPDATE SET ${updates.join(', ')}`)
          .run(...values);
      }
    }
    for (const { table, deletes } of writes) {
      for (const key of deletes) database.query(`DELETE FROM ${table} WHERE id = ?`).run(key);
    }
    // A row stays as it was written, or the whole write is refused.
    for (const { table, puts } of writes) {
      for (const [id, document] of Object.entries(puts)) {
        const left = database.query(`SELECT * FROM ${table} WHERE id = ?`).get(id);
        if (left === null || !Bun.deepEquals(withoutNulls(left), { id, ...document })) throw new Error('it followed');
      }
    }
    // SQLite would compare row by row, and a write is compared when it is whole, with what follows from it.
    for (const [table, columns] of Object.entries(uniqueOf)) {
      for (const column of columns) {
        const twice = `SELECT 1 FROM ${table} WHERE ${column} IS NOT NULL GROUP BY ${column} HAVING COUNT(*) > 1`;
        if (database.query(twice).get() !== null) throw new Error('a value is there twice');
      }
    }
    database.run('COMMIT');
    return true;
  } catch {
    database.run('ROLLBACK');
    return false;
  }
}

function contentsOf(database: Database): Record<string, unknown[]> {
  return Object.fromEntries(
    names.map((table) => [table, database.query(`SELECT * FROM ${table} ORDER BY id`).all().map(withoutNulls)]),
  );
}

function withoutNulls(row: unknown): object {
  return Object.fromEntries(Object.entries(row as object).filter(([, value]) => value !== null));
}

async function stored(storage: Storage, tables: readonly TableRecord[]): Promise<Record<string, unknown[]>> {
  const contents: Record<string, unknown[]> = {};
  for (const [at, table] of tables.entries()) {
    const rows: { id: string }[] = [];
    for (const { rangeId } of table.ranges) {
      const range = await storage.openRange(rangeId);
      const all = { fromKey: '', fromInclusive: true, toKey: null, toInclusive: false };
      for (const { key, body } of range.documents.page(all).documents) {
        rows.push({ id: key, ...(documentOf(body) as object) });
      }
    }
    contents[names[at] ?? ''] = rows.sort((left, right) => (left.id < right.id ? -1 : 1));
  }
  return contents;
}

for (const rangeCount of [1, 3]) {
  test(`rules over ${rangeCount} ranges are those of SQLite (seed ${seed})`, async () => {
    using directory = temporaryDirectory();
    const random = new SeededRandom(seed + rangeCount);
    const [ofBook, ofReview] = [random.pick(onDeletes), random.pick(onDeletes)];
    const database = oracle(ofBook, ofReview);
    let storage = await openTestStorage(directory.path);
    const tables: TableRecord[] = [];
    for (const name of names) tables.push(await createTable(storage, name, rangeCount));
    const ids = (at: number) => tables[at]?.ranges.map(({ rangeId }) => rangeId) ?? [];
    const constrained: ConstrainedTable[] = [
      {
        name: 'authors',
        rangeIds: ids(0),
        unique: [
          { name: 'email', isText: true },
          { name: 'n', isText: false },
        ],
        references: [],
      },
      {
        name: 'books',
        rangeIds: ids(1),
        unique: [{ name: 'email', isText: true }],
        references: [{ column: 'author', table: 'authors', onDelete: ofBook }],
      },
      {
        name: 'reviews',
        rangeIds: ids(2),
        unique: [],
        references: [
          { column: 'book', table: 'books', onDelete: ofReview },
          { column: 'answers', table: 'reviews', onDelete: 'cascade' },
        ],
      },
    ];
    const key = (table: number) => `r${random.between(0, rangeCount)}${names[table]?.[0]}${random.between(0, 5)}`;
    const maybe = (column: string, value: unknown) => (random.chance(0.7) ? { [column]: value } : {});
    const document = (table: number): Record<string, unknown> => {
      const email = () => `${random.pick(['a', 'Ä', "o'b", '1'])}@${random.between(0, 6)}`;
      if (table === 0) return { ...maybe('email', email()), ...maybe('n', random.between(-3, 9)) };
      if (table === 1) return { ...maybe('email', email()), ...maybe('author', key(0)) };
      return { ...maybe('book', key(1)), ...maybe('answers', key(2)) };
    };
    let refused = 0;
    for (let round = 0; round < rounds; round += 1) {
      const writes: Write[] = [];
      for (const [at, table] of names.entries()) {
        if (random.chance(0.5)) continue;
        const puts = Object.fromEntries(
          Array.from({ length: random.between(0, 3) }, () => [key(at), document(at)] as const),
        );
        const deletes = random.chance(0.4) ? [key(at)].filter((each) => !(each in puts)) : [];
        if (Object.keys(puts).length + deletes.length > 0) writes.push({ table, puts, deletes });
      }
      if (writes.length === 0) continue;
      const isAccepted = applyTo(database, writes);
      const request = group(
        writes.flatMap(({ table, puts, deletes }) => splitByRange(tables[names.indexOf(table)], puts, deletes)),
        { constrained },
      );
      const outcome = await storage.append(request).then(
        () => 'accepted',
        (error: { code?: string }) => error.code,
      );
      const context = JSON.stringify({ seed, round, ofBook, ofReview, writes });
      expect(`${outcome} ${context}`).toBe(`${isAccepted ? 'accepted' : 'constraint_violation'} ${context}`);
      if (!isAccepted) refused += 1;
      if (round % 10 === 0) expect(await stored(storage, tables)).toEqual(contentsOf(database));
      if (random.chance(0.02)) {
        await storage.close();
        storage = await openTestStorage(directory.path);
      }
    }
    expect(await stored(storage, tables)).toEqual(contentsOf(database));
    expect(refused).toBeGreaterThan(rounds / 20);
    await storage.close();
  });
}

function splitByRange(table: TableRecord | undefined, puts: Write['puts'], deletes: readonly string[]): RangeWrite[] {
  return (table?.ranges ?? []).flatMap(({ rangeId, startKey, endKey }): RangeWrite[] => {
    const isHere = (key: string) => key >= startKey && (endKey === null || key < endKey);
    const own = Object.fromEntries(Object.entries(puts).filter(([key]) => isHere(key)));
    const gone = deletes.filter(isHere);
    if (Object.keys(own).length + gone.length === 0) return [];
    return [{ rangeId, frame: frameOf({ puts: own, deletes: gone }) }];
  });
}

test('of writers at the same time one alone takes a unique value', async () => {
  using directory = temporaryDirectory();
  const storage = await openTestStorage(directory.path);
  const table = await createTable(storage, 'people', 3);
  const constrained: ConstrainedTable[] = [
    {
      name: 'people',
      rangeIds: table.ranges.map(({ rangeId }) => rangeId),
      unique: [{ name: 'email', isText: true }],
      references: [],
    },
  ];
  const keys = Array.from({ length: 30 }, (_, at) => `r${at % 3}-${at}`);
  const outcomes = await Promise.allSettled(
    keys.map((key) =>
      storage.append(group(splitByRange(table, { [key]: { email: 'one@a' } }, []), { constrained, requestId: key })),
    ),
  );
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect((await stored(storage, [table])).authors).toHaveLength(1);
  const again = storage.append(group(splitByRange(table, { 'r1-x': { email: 'one@a' } }, []), { constrained }));
  expect(await failure(again)).toMatchObject({
    code: 'constraint_violation',
    details: { table: 'people', column: 'email', key: 'r1-x', constraint: 'unique' },
  });
  await storage.close();
});
