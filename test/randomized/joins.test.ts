import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { RowFilters } from '../../src/access/principal.ts';
import type { Database } from '../../src/server/database/open-database.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/**
 * For random documents and joins of every type, operator, strategy and page, a query finds what a plain join over the same
 * documents finds; under row filters of both sides, what it finds over what they permit.
 */

const seed = runSeed();
const chance = new SeededRandom(seed);
const rounds = Number(process.env.SUNDEW_JOIN_ROUNDS ?? 40);

const random = (below: number) => chance.between(0, below - 1);
const pick = <Item>(items: readonly Item[]) => chance.pick(items);

type Document = Record<string, unknown>;
type Table = Map<string, Document>;
interface Row {
  readonly left: string | undefined;
  /** Table -> key of the joined row. */
  readonly rights: Record<string, string | undefined>;
}
interface Join {
  right_table: string;
  join_type?: string;
  on: { left_field: string; right_field: string; operator?: string };
  right_filters?: { filter_query?: unknown; filter_prefix?: string; limit?: number };
  strategy_hint?: string;
  nested_join?: Join;
}

const tables: Record<string, Table> = { orders: new Map(), customers: new Map(), cities: new Map() };
/** The rows that the caller sees. */
let shown: Record<string, Table> = tables;

function value(): unknown {
  const scalar = () => pick<unknown>([random(6), random(6), `v${random(6)}`, `V ${random(4)}`, random(2) === 0]);
  const choice = random(10);
  if (choice === 0) return undefined;
  if (choice === 1) return [scalar(), scalar()];
  return choice === 2 ? null : scalar();
}

function fill(): void {
  for (let at = 0; at < 40; at += 1) {
    tables.orders?.set(`o${at}`, {
      customer: random(8) === 0 ? random(25) : `c${random(25)}`,
      a: value(),
      n: random(9),
    });
  }
  for (let at = 0; at < 25; at += 1) {
    const key = random(3) === 0 ? `${at}` : `c${at}`;
    tables.customers?.set(key, { a: value(), b: { c: value() }, city: `t${random(7)}`, n: random(9), even: at % 2 });
  }
  for (let at = 0; at < 6; at += 1) tables.cities?.set(`t${at}`, { name: `v${at}`, n: at });
}

function scalarsAt(key: string, document: Document, path: string): (string | number | boolean)[] {
  if (path === '_id') return [key];
  const found = path.split('.').reduce<unknown>((at, name) => (at as Document | undefined)?.[name], document);
  return (Array.isArray(found) ? found : [found]).filter((each) =>
    ['string', 'number', 'boolean'].includes(typeof each),
  );
}

function relates(left: string | number | boolean, operator: string, right: string | number | boolean): boolean {
  if (operator === 'neq') return left !== right;
  if (typeof left !== typeof right) return false;
  const [one, other] = typeof left === 'string' ? [left, right] : [Number(left), Number(right)];
  if (operator === 'eq') return one === other;
  if (operator === 'lt') return one < other;
  if (operator === 'lte') return one <= other;
  return operator === 'gt' ? one > other : one >= other;
}

function plainJoin(rows: readonly Row[], join: Join): Row[] {
  const { right_table: name, on, right_filters: filters = {}, join_type: type = 'inner' } = join;
  const even = filters.filter_query === undefined ? undefined : 0;
  let rights = [...(shown[name] ?? [])].sort(([one], [other]) => (one < other ? -1 : 1));
  rights = rights.filter(([, { even: own }]) => even === undefined || own === even);
  rights = rights.filter(([key]) => key.startsWith(filters.filter_prefix ?? '')).slice(0, filters.limit);
  const before = Object.keys(rows[0]?.rights ?? {});
  const matched = new Set<string>();
  const joined = rows.flatMap((row): Row[] => {
    const [owner, ...path] = on.left_field.split('.');
    const of = before.includes(owner ?? '') ? (owner ?? '') : undefined;
    const key = of === undefined ? row.left : row.rights[of];
    const document = key === undefined ? undefined : shown[of ?? 'orders']?.get(key);
    const field = of === undefined ? on.left_field : path.join('.');
    const hasKey = [field, on.right_field].includes('_id') && ['eq', 'neq'].includes(on.operator ?? 'eq');
    const compared = (each: string | number | boolean) => (hasKey && typeof each === 'number' ? String(each) : each);
    const values = key === undefined || document === undefined ? [] : scalarsAt(key, document, field);
    const lefts = values.map(compared);
    const found = rights.filter(([rightKey, right]) =>
      scalarsAt(rightKey, right, on.right_field)
        .map(compared)
        .some((other) => lefts.some((one) => relates(one, on.operator ?? 'eq', other))),
    );
    for (const [rightKey] of found) matched.add(rightKey);
    if (found.length === 0) return type === 'left' ? [{ ...row, rights: { ...row.rights, [name]: undefined } }] : [];
    return found.map(([rightKey]) => ({ ...row, rights: { ...row.rights, [name]: rightKey } }));
  });
  const alone = type === 'right' ? rights.filter(([key]) => !matched.has(key)) : [];
  const none = Object.fromEntries(before.map((each) => [each, undefined]));
  const all = [...joined, ...alone.map(([key]) => ({ left: undefined, rights: { ...none, [name]: key } }))];
  return join.nested_join ? plainJoin(all, join.nested_join) : all;
}

function randomJoin(): Join {
  const operator = pick(['eq', 'eq', 'eq', 'eq', 'neq', 'lt', 'lte', 'gt', 'gte']);
  const byKey = random(2) === 0;
  const join: Join = {
    right_table: 'customers',
    join_type: pick(['inner', 'left', 'right']),
    on: byKey
      ? { left_field: pick(['customer', 'a', '_id']), right_field: '_id', operator }
      : { left_field: pick(['a', 'n', 'customer', '_id']), right_field: pick(['a', 'b.c', 'n', 'city']), operator },
  };
  if (random(3) === 0) join.strategy_hint = pick(['broadcast', 'index_lookup', 'shuffle']);
  const filters: Join['right_filters'] = {};
  if (random(3) === 0) filters.filter_query = { term: 0, field: 'even' };
  if (random(4) === 0) filters.filter_prefix = 'c';
  if (random(5) === 0) filters.limit = random(12);
  if (Object.keys(filters).length > 0) join.right_filters = filters;
  if (random(3) === 0) {
    join.nested_join = {
      right_table: 'cities',
      join_type: pick(['inner', 'left', 'right']),
      on: { left_field: pick(['customers.city', 'customers.n', 'n']), right_field: pick(['_id', 'n']) },
    };
  }
  return join;
}

interface Result {
  hits: { total: { value: number; relation: string }; hits: { _id: string; _source?: Document; _sort?: unknown[] }[] };
  partial?: boolean;
  profile?: { join: object };
}

const numShards = [1, 3] as const;
const directories = numShards.map(() => new TemporaryDirectory());
let databases: Database[] = [];

beforeAll(async () => {
  fill();
  databases = await Promise.all(directories.map(({ path }) => openTestDatabase(path)));
  for (const [at, database] of databases.entries()) {
    for (const [name, documents] of Object.entries(tables)) {
      await database.services.tables.create(name, { num_shards: numShards[at] ?? 1 }, testCaller());
      const inserts = Object.fromEntries(documents);
      await database.services.writes.batch(name, bodyOf({ inserts, sync_level: 'full_index' }), testCaller());
    }
  }
}, 120_000);

afterAll(async () => {
  for (const database of databases) await database.close();
  for (const directory of directories) directory[Symbol.dispose]();
});

const permitted: RowFilters = {
  orders: { range: { n: { lt: 6 } } },
  customers: { range: { n: { gte: 3 } } },
  cities: { range: { n: { gte: 2 } } },
};
const isPermitted: Record<string, (n: number) => boolean> = {
  orders: (n) => n < 6,
  customers: (n) => n >= 3,
  cities: (n) => n >= 2,
};

const rowsOf = ({ hits }: Result): string[] =>
  hits.hits.map(({ _id, _source = {} }) =>
    JSON.stringify([_id, _source['customers._id'] ?? null, _source['cities._id'] ?? null]),
  );

function expectedRows(join: Join): string[] {
  const orders = [...(shown.orders?.keys() ?? [])].sort();
  const asked = orders.filter((key) => Number(shown.orders?.get(key)?.n) >= 2);
  const rows = plainJoin(
    asked.map((key) => ({ left: key, rights: {} })),
    join,
  );
  return rows.map(({ left, rights }) => JSON.stringify([left ?? '', rights.customers ?? null, rights.cities ?? null]));
}

describe.each([0, 1])('joins in database %i', (at) => {
  async function query(request: object, rowFilter?: RowFilters): Promise<Result> {
    const body = bodyOf({ table: 'orders', ...request });
    const [answer = []] = await (databases[at] as Database).services.queries.run(
      undefined,
      body,
      testCaller({ rowFilter }),
    );
    return JSON.parse(answer.join('')) as Result;
  }

  test('are what a plain join finds, whole and in pages', async () => {
    shown = tables;
    for (let round = 0; round < rounds; round += 1) {
      const join = randomJoin();
      const expected = expectedRows(join);
      const where = `seed ${seed}, round ${round}: ${JSON.stringify(join)}`;
      const asked = { join, filter_query: { range: { n: { gte: 2 } } }, order_by: [{ field: '_id' }] };
      const whole = await query({ ...asked, limit: 9_000, profile: true });
      expect(rowsOf(whole), where).toEqual(expected);
      expect(whole.hits.total, where).toEqual({ value: expected.length, relation: 'exact' });
      expect(whole.profile?.join, where).toMatchObject({ right_table: 'customers' });
      const count = await query({ ...asked, count: true });
      expect(count.hits.total, where).toEqual({ value: expected.length, relation: 'exact' });
      const offset = random(expected.length + 2);
      const page = await query({ ...asked, limit: 5, offset });
      expect(rowsOf(page), where).toEqual(expected.slice(offset, offset + 5));
      expect(page.hits.total.value, where).toBeGreaterThanOrEqual(Math.min(expected.length, offset + 5));
      if (page.hits.total.relation === 'exact') expect(page.hits.total.value, where).toBe(expected.length);
      if (!JSON.stringify(join).includes('"right"')) {
        expect(await pages(asked, expected.length), where).toEqual(expected);
      }
    }
  }, 120_000);

  async function pages(asked: object, most: number): Promise<string[]> {
    const rows: string[] = [];
    for (let after: unknown[] | undefined; rows.length <= most; ) {
      const next = await query({ ...asked, limit: 1 + random(6), ...(after && { search_after: after }) });
      rows.push(...rowsOf(next));
      after = next.hits.hits.at(-1)?._sort;
      if (after === undefined) break;
    }
    return rows;
  }

  test('under row filters are those of what the filters permit', async () => {
    shown = Object.fromEntries(
      Object.entries(tables).map(([name, documents]) => [
        name,
        new Map([...documents].filter(([, { n }]) => isPermitted[name]?.(Number(n)))),
      ]),
    );
    for (let round = 0; round < rounds; round += 1) {
      const join = randomJoin();
      const asked = { join, filter_query: { range: { n: { gte: 2 } } }, order_by: [{ field: '_id' }] };
      const where = `seed ${seed}, round ${round}: ${JSON.stringify(join)}`;
      const whole = await query({ ...asked, limit: 9_000 }, permitted);
      const expected = expectedRows(join);
      expect(rowsOf(whole), where).toEqual(expected);
      expect(whole.hits.total, where).toEqual({ value: expected.length, relation: 'exact' });
    }
  }, 120_000);
});
