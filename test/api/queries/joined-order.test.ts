import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { connect } from '../../../src/client/client.ts';
import { limits } from '../../../src/config/limits.ts';
import { table as grant, startGuardedServer } from '../../support/access.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

setDefaultTimeout(120_000);

interface Hit {
  _id: string;
  _source?: Record<string, unknown>;
  _sort?: unknown[];
}
interface Result {
  hits: { total: { value: number; relation: string }; hits: Hit[] };
  partial?: boolean;
}
type Order = { field: string; desc?: boolean }[];

let server: TestServer;

/** Two places that are missing, texts beside numbers and booleans, arrays, and equal values. */
const people: Record<string, object> = {
  p0: { name: 'Ada', rank: 3 },
  p1: { name: 'Bob', rank: 'a' },
  p2: { name: 'Cleo', rank: [9, 1, 'z'] },
  p3: { name: 'Dan' },
  p4: { name: '\u{1f600}', rank: true },
  p5: { name: '\uffee', rank: 3 },
  p6: { name: 'Nobody asks', rank: 2 },
  p7: { name: 'Nobody either', rank: null },
};
const visitCount = 600;

function visit(at: number): object {
  const seconds = [undefined, '2024-01-01T00:00:00Z', '2024-01-01T00:00:00.5Z', '2023-06-01T00:00:00Z'][at % 4];
  // Of one field numbers, texts, booleans and nothing.
  const mixed = [at % 9, `t${at % 5}`, at % 2 === 0, undefined][at % 4];
  return { person: at % 10 < 6 ? `p${at % 6}` : `gone${at}`, n: at % 50, when: seconds, mixed, big: 1e21 + at * 1e7 };
}

beforeAll(async () => {
  server = await startTestServer();
  const properties = { when: { type: 'string', format: 'date-time', 'x-service-types': ['datetime'] } };
  const schema = { document_schemas: { d: { schema: { type: 'object', properties } } }, default_type: 'd' };
  await fill('people', people, { num_shards: 2 });
  const visits = Array.from({ length: visitCount }, (_, at) => [`v${String(at).padStart(4, '0')}`, visit(at)] as const);
  await fill('visits', Object.fromEntries(visits), { num_shards: 3, schema });
});

afterAll(() => server[Symbol.asyncDispose]());

async function fill(name: string, inserts: object, settings: object): Promise<void> {
  expect((await server.send('POST', `/db/v1/tables/${name}`, settings)).status).toBe(200);
  const batch = await server.send('POST', `/db/v1/tables/${name}/batch`, { inserts, sync_level: 'full_index' });
  expect(batch.status).toBe(201);
}

async function ask(request: object): Promise<Result> {
  const { status, body } = await server.send('POST', '/db/v1/query', { table: 'visits', ...request });
  expect(status, JSON.stringify(body)).toBe(200);
  return (body as unknown as { responses: [Result] }).responses[0];
}

function joinOf(join_type: string): object {
  return { right_table: 'people', join_type, on: { left_field: 'person', right_field: '_id' } };
}

const shown = ({ _id, _source }: Hit) => `${_id}/${_source?.['people._id'] ?? '-'}`;
const shownOf = ({ hits }: Result) => hits.hits.map(shown);

/** The value of a row in a direction, beside the rank of its type: what the guide says of orders, written once more. */
function keyOf(value: unknown, desc: boolean): [number, number | string] {
  const values = [value].flat().filter((each) => each !== null && each !== undefined);
  const ranks = values.map((each) => ['number', 'date', 'string', 'boolean'].indexOf(typeof each));
  const rank = Math.min(4, ...ranks);
  const same = values.filter((_, at) => ranks[at] === rank) as (number | string)[];
  if (rank === 4) return [4, 0];
  const sorted = same.sort((a, b) => compare(a, b));
  return [rank, sorted.at(desc ? -1 : 0) as number | string];
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return Number(a) - Number(b);
}

function ordered(hits: readonly Hit[], order: Order): Hit[] {
  return [...hits].sort((one, other) => {
    for (const { field, desc = false } of order) {
      const [a, b] = [one, other].map(({ _source, _id }) => keyOf(field === '_id' ? _id : _source?.[field], desc));
      if (!a || !b) continue;
      if (a[0] === 4 || b[0] === 4) {
        if (a[0] !== b[0]) return a[0] - b[0];
        continue;
      }
      const direction = a[0] - b[0] || compare(a[1], b[1]);
      if (direction !== 0) return desc ? -direction : direction;
    }
    if ((one._id === '') !== (other._id === '')) return one._id === '' ? 1 : -1;
    return compare(one._id, other._id) || compare(shown(one), shown(other));
  });
}

const orders: Order[] = [
  [{ field: 'people.name' }],
  [{ field: 'people.name', desc: true }],
  [{ field: 'people.rank' }, { field: 'n', desc: true }],
  [{ field: 'people.rank', desc: true }, { field: 'mixed' }],
  [{ field: 'n' }, { field: 'people._id', desc: true }],
  [{ field: 'mixed', desc: true }, { field: 'people.rank' }, { field: '_id', desc: true }],
];

describe('an order by fields of a joined table', () => {
  for (const join_type of ['inner', 'left', 'right']) {
    for (const order_by of orders) {
      test(`${join_type}: ${JSON.stringify(order_by)}`, async () => {
        const request = { join: joinOf(join_type), order_by };
        const whole = await ask({ ...request, limit: 1_000 });
        const unordered = await ask({ join: joinOf(join_type), limit: 1_000 });
        expect(shownOf(whole)).toEqual(ordered(unordered.hits.hits, order_by).map(shown));
        expect(whole.hits.total).toEqual({ value: unordered.hits.hits.length, relation: 'exact' });
        expect(shownOf(await ask({ ...request, limit: 25, offset: 111 }))).toEqual(shownOf(whole).slice(111, 136));
        expect(shownOf(await ask({ ...request, limit: 25, offset: 111, fields: ['people._id'] }))).toEqual(
          shownOf(whole).slice(111, 136),
        );
        await expectCursors(request, shownOf(whole));
      });
    }
  }

  test('shows the values that it goes by', async () => {
    const order_by = [{ field: 'people.rank', desc: true }, { field: 'n' }, { field: 'people.name' }];
    const { hits } = await ask({ join: joinOf('left'), order_by, limit: 1_000 });
    const values = Object.fromEntries(
      hits.hits.map(({ _source, _sort }) => [String(_source?.['people._id']), [_sort?.[0], _sort?.[2]]]),
    );
    expect(values).toMatchObject({
      p0: [3, 'Ada'],
      p1: ['a', 'Bob'],
      p2: [9, 'Cleo'],
      p3: [null, 'Dan'],
      p4: [true, '\u{1f600}'],
      undefined: [null, null],
    });
  });

  test('of the second of two joins, and by score before that', async () => {
    const nested = { right_table: 'towns', on: { left_field: 'people.name', right_field: 'of' } };
    await fill(
      'towns',
      { a: { of: 'Ada', size: 5 }, b: { of: ['Ada', 'Bob'], size: 7 }, c: { of: 'Bob', size: 6 } },
      {},
    );
    const request = {
      join: { ...joinOf('inner'), nested_join: nested },
      full_text_search: { match_all: {} },
      order_by: [{ field: '_score', desc: true }, { field: 'towns.size', desc: true }, { field: '_id' }],
      fields: ['towns.size', 'people._id'],
    };
    const whole = await ask({ ...request, limit: 1_000 });
    const sizes = whole.hits.hits.map(({ _source }) => Number(_source?.['towns.size']));
    expect(new Set(sizes)).toEqual(new Set([7, 6, 5]));
    expect(sizes).toEqual([...sizes].sort((a, b) => b - a));
    await expectCursors(request, shownOf(whole));
  });

  test('goes by what was just written, on both sides', async () => {
    const batch = {
      tables: { people: { inserts: { p8: { name: 'A', rank: -1 } } }, visits: { inserts: { w: { person: 'p8' } } } },
    };
    await server.send('POST', '/db/v1/batch', { ...batch, sync_level: 'propose' });
    const request = { join: joinOf('inner'), order_by: [{ field: 'people.rank' }], limit: 1 };
    expect(shownOf(await ask({ ...request, wait_for_index_ms: 5_000 }))).toEqual(['w/p8']);
    const deletes = { tables: { people: { deletes: ['p8'] }, visits: { deletes: ['w'] } }, sync_level: 'full_index' };
    expect((await server.send('POST', '/db/v1/batch', deletes)).status).toBeLessThan(300);
  });

  test('takes no cursor of another order, and none that was changed', async () => {
    const request = { table: 'visits', join: joinOf('inner'), order_by: [{ field: 'people.name' }] };
    const [hit] = (await ask(request)).hits.hits;
    const others = [{ field: 'people.rank' }, { field: 'people.name', desc: true }];
    for (const other of others) {
      const answer = await server.send('POST', '/db/v1/query', {
        ...request,
        order_by: [other],
        search_after: hit?._sort,
      });
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
    }
    const changed = ['Zed', ...(hit?._sort ?? []).slice(1)];
    const answer = await server.send('POST', '/db/v1/query', { ...request, search_before: changed });
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_query' } });
  });

  test('tells nothing of rows that a row filter hides', async () => {
    await using guarded = await startGuardedServer();
    const rows = {
      people: { a: { name: 'A', open: false }, b: { name: 'B', open: true } },
      visits: { v1: { person: 'b' }, v2: { person: 'a' } },
    };
    for (const [name, inserts] of Object.entries(rows)) {
      await guarded.asAdmin('POST', `/db/v1/tables/${name}`);
      await guarded.asAdmin('POST', `/db/v1/tables/${name}/batch`, { inserts, sync_level: 'full_index' });
    }
    const viewer = await guarded.user('viewer', [grant('visits', 'read'), grant('people', 'read')]);
    await guarded.asAdmin('PUT', '/auth/v1/users/viewer/row-filters/people', { bool: true, field: 'open' });
    const order_by = [{ field: 'people.name' }];
    const request = { table: 'visits', join: joinOf('left'), order_by };
    const answer = await guarded.as(viewer, 'POST', '/db/v1/query', request);
    const { hits } = (answer.body as unknown as { responses: [Result] }).responses[0].hits;
    expect(hits.map(({ _id, _sort }) => [_id, _sort?.[0]])).toEqual([
      ['v1', 'B'],
      ['v2', null],
    ]);
  });
});

test.each([
  ['by key', { left_field: 'of', right_field: '_id' }, undefined],
  ['by an index', { left_field: 'of', right_field: 'tag' }, 'index_lookup'],
  ['read whole', { left_field: 'of', right_field: '_id' }, 'broadcast'],
])('by the time of the write, of rows found %s', async (name, on, strategy_hint) => {
  const [posts, notes] = [`posts ${name}`, `notes ${name}`].map((each) => each.replaceAll(' ', '_')) as [
    string,
    string,
  ];
  const inserts = {
    late: { tag: 'late', _timestamp: '2024-05-01T12:30:00+02:00' },
    early: { tag: 'early', _timestamp: '2024-05-01T10:00:00Z' },
    now: { tag: 'now' },
    first: { tag: 'first', _timestamp: '2001-09-09T01:46:40Z' },
  };
  await fill(posts, inserts, { num_shards: 2 });
  const hits = { n1: { of: 'now' }, n2: { of: 'late' }, n3: { of: 'none' }, n4: { of: 'early' }, n5: { of: 'first' } };
  await fill(notes, hits, { num_shards: 2 });
  const join = { right_table: posts, join_type: 'left', on, strategy_hint };
  const find = async (more: object, desc = false) => {
    const request = { table: notes, join, order_by: [{ field: `${posts}._timestamp`, desc }], ...more };
    return (await ask(request)).hits.hits;
  };
  const keysOf = (found: readonly Hit[]) => found.map(({ _id }) => _id);
  const all = await find({});
  expect(keysOf(all)).toEqual(['n5', 'n4', 'n2', 'n1', 'n3']);
  expect(all.map(({ _sort }) => _sort?.[0])).toEqual([
    '2001-09-09T01:46:40.000Z',
    '2024-05-01T10:00:00.000Z',
    '2024-05-01T10:30:00.000Z',
    expect.stringMatching(/^20\d\d-.*Z$/),
    null,
  ]);
  expect(keysOf(await find({}, true))).toEqual(['n1', 'n2', 'n4', 'n5', 'n3']);
  expect(keysOf(await find({ search_after: all[2]?._sort }))).toEqual(['n1', 'n3']);
  const [, first, , last] = await find({ fields: [`${posts}._timestamp`] });
  expect(first?._source).toEqual({ [`${posts}._timestamp`]: inserts.early._timestamp });
  expect(last?._source).toEqual({ [`${posts}._timestamp`]: all[3]?._sort?.[0] });
  const whole = (await find({}))[3];
  expect(whole?._source).not.toHaveProperty(`${posts}._timestamp`);
});

test('of more hits than are looked at is refused, not answered from some of them', async () => {
  // Hits come in windows of 4,096, and the last of them may reach beyond the bound.
  const hits = limits.joinLeftRowsMax + 4_096;
  const part = 20_000;
  await fill('many', { first: { p: 'p1' } }, { num_shards: 2 });
  for (let start = 0; start < hits; start += part) {
    const rows = Array.from({ length: Math.min(part, hits - start) }, (_, at) => [`m${start + at}`, { p: 'p0' }]);
    const request = { inserts: Object.fromEntries(rows), sync_level: 'full_index' };
    expect((await server.send('POST', '/db/v1/tables/many/batch', request)).status).toBe(201);
  }
  const join = { right_table: 'people', join_type: 'left', on: { left_field: 'p', right_field: '_id' } };
  const request = { table: 'many', join, order_by: [{ field: 'people.name' }], fields: [], limit: 1 };
  const refused = await server.send('POST', '/db/v1/query', request);
  expect(refused.body).toMatchObject({ code: 'limit_exceeded' });
  expect(refused.body.error).toContain('order');
  const narrowed = await ask({ ...request, filter_query: { ids: ['m7', 'first'] }, limit: 2, fields: ['people._id'] });
  expect(shownOf(narrowed)).toEqual(['m7/p0', 'first/p1']);
  expect((await ask({ ...request, order_by: [{ field: '_id' }] })).hits.hits).toHaveLength(1);
});

describe('cursors of joined rows in the order of the hits', () => {
  const ownOrders: Order[] = [
    [{ field: 'n' }],
    [{ field: 'mixed', desc: true }],
    [{ field: 'mixed' }, { field: 'n', desc: true }],
    [{ field: 'when' }],
    [
      { field: 'when', desc: true },
      { field: '_id', desc: true },
    ],
    [{ field: 'big', desc: true }],
  ];
  for (const join_type of ['inner', 'left', 'right']) {
    for (const order_by of ownOrders) {
      test(`${join_type}: ${JSON.stringify(order_by)}`, async () => {
        const request = { join: joinOf(join_type), order_by };
        const whole = shownOf(await ask({ ...request, limit: 1_000 }));
        await expectCursors(request, whole);
      });
    }
  }
});

test('the client follows the cursors of a right join to its last row', async () => {
  const db = connect(server.url);
  const join = { right_table: 'people', join_type: 'right', on: { left_field: 'person', right_field: '_id' } } as const;
  for (const order_by of [undefined, [{ field: 'people.name' }]]) {
    const query = { join, ...(order_by && { order_by }) };
    const whole = shownOf(await ask({ ...query, order_by: order_by ?? [{ field: '_id' }], limit: 1_000 }));
    const seen: string[] = [];
    for await (const hit of db.table('visits').hits(query)) seen.push(shown(hit as Hit));
    expect(seen).toEqual(whole);
    expect(seen.filter((each) => each.startsWith('/')).length).toBeGreaterThan(1);
  }
});

/** Forwards from the beginning, backwards from the end, and forwards again from a page that was reached backwards. */
async function expectCursors(request: object, whole: readonly string[]): Promise<void> {
  const forwards: Hit[] = [];
  const backwards: Hit[] = [];
  const limit = 170;
  for (let page = await ask({ ...request, limit }); page.hits.hits.length > 0; ) {
    forwards.push(...page.hits.hits);
    page = await ask({ ...request, limit, search_after: forwards.at(-1)?._sort });
  }
  expect(forwards.map(shown)).toEqual([...whole]);
  for (let before = forwards.at(-1); before; before = backwards[0]) {
    const { hits } = (await ask({ ...request, limit, search_before: before._sort })).hits;
    if (hits.length === 0) break;
    backwards.unshift(...hits);
  }
  expect(backwards.map(shown)).toEqual(whole.slice(0, -1));
  const again = await ask({ ...request, limit: 7, search_after: backwards[20]?._sort });
  expect(shownOf(again)).toEqual(whole.slice(21, 28));
}
