import { afterAll, beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test';
import { RightTable } from '../../../src/query/join/right-table.ts';
import { table as grant, startGuardedServer } from '../../support/access.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

setDefaultTimeout(120_000);

type Source = Record<string, unknown>;
interface Result {
  hits: {
    total: { value: number; relation: string };
    hits: { _id: string; _score: number; _source?: Source; _sort?: unknown[]; _highlight?: object }[];
  };
  aggregations?: Record<string, object>;
  partial?: boolean;
  profile?: { join: Record<string, unknown> };
}

let server: TestServer;

const customers = {
  c1: { name: 'Ada', city: 'london', age: 36, address: { zip: 'N1', street: 'Rose' } },
  c2: { name: 'Bob', city: 'paris', age: 20 },
  c3: { name: 'Cleo', city: 'rome', age: 50 },
};
const orders = {
  o1: { customer: 'c1', item: 'green tea', total: 30 },
  o2: { customer: 'c2', item: 'black tea', total: 10 },
  o3: { customer: 'c1', item: 'coffee', total: 20 },
  o4: { customer: 'gone', item: 'water', total: 5 },
  o5: { item: 'nothing' },
};
const notes = {
  n1: { about: 'c1', text: 'early' },
  n2: { about: ['c1', 'c2'], text: 'late' },
};
const cities = { london: { country: 'UK' }, paris: { country: 'FR' } };

async function fill(at: TestServer, name: string, inserts: object, settings: object = {}): Promise<void> {
  await at.send('POST', `/db/v1/tables/${name}`, settings);
  const batch = await at.send('POST', `/db/v1/tables/${name}/batch`, { inserts, sync_level: 'full_index' });
  expect(batch.status).toBe(201);
}

beforeAll(async () => {
  server = await startTestServer();
  await fill(server, 'customers', customers, { num_shards: 2 });
  await fill(server, 'orders', orders, { num_shards: 2 });
  await fill(server, 'notes', notes);
  await fill(server, 'cities', cities);
});

afterAll(() => server[Symbol.asyncDispose]());

async function ask(request: object): Promise<Result> {
  const { status, body } = await server.send('POST', '/db/v1/query', { table: 'orders', ...request });
  expect(status, JSON.stringify(body)).toBe(200);
  return (body as unknown as { responses: [Result] }).responses[0];
}

const byCustomer = { right_table: 'customers', on: { left_field: 'customer', right_field: '_id' } };
const inOrder = { order_by: [{ field: '_id' }] };
const sources = ({ hits }: Result) => hits.hits.map(({ _id, _source }) => [_id, _source]);

describe('a join', () => {
  test('puts the members of the other row beside those of the hit', async () => {
    const result = await ask({ ...inOrder, join: byCustomer, filter_query: { term: 'c1', field: 'customer' } });
    const ada = {
      'customers._id': 'c1',
      'customers.name': 'Ada',
      'customers.city': 'london',
      'customers.age': 36,
      'customers.address': { zip: 'N1', street: 'Rose' },
    };
    expect(sources(result)).toEqual([
      ['o1', { ...orders.o1, ...ada }],
      ['o3', { ...orders.o3, ...ada }],
    ]);
    expect(result.hits.total).toEqual({ value: 2, relation: 'exact' });
  });

  test('leaves out, or keeps, hits without a row; a hit with several rows is several hits', async () => {
    expect((await ask({ ...inOrder, join: byCustomer })).hits.hits.map(({ _id }) => _id)).toEqual(['o1', 'o2', 'o3']);
    const left = await ask({ ...inOrder, join: { ...byCustomer, join_type: 'left', right_fields: ['name'] } });
    expect(sources(left).slice(2)).toEqual([
      ['o3', { ...orders.o3, 'customers.name': 'Ada' }],
      ['o4', orders.o4],
      ['o5', orders.o5],
    ]);
    const about = { right_table: 'notes', on: { left_field: 'customer', right_field: 'about' } };
    const several = await ask({ ...inOrder, join: about, fields: ['item', 'notes.text'] });
    expect(sources(several)).toEqual([
      ['o1', { item: 'green tea', 'notes.text': 'early' }],
      ['o1', { item: 'green tea', 'notes.text': 'late' }],
      ['o2', { item: 'black tea', 'notes.text': 'late' }],
      ['o3', { item: 'coffee', 'notes.text': 'early' }],
      ['o3', { item: 'coffee', 'notes.text': 'late' }],
    ]);
  });

  test('from the right also has the rows that no hit has found, last and without a document', async () => {
    const join = { ...byCustomer, join_type: 'right', right_fields: ['name', '_id'] };
    const result = await ask({ ...inOrder, join, fields: ['item', 'customers.*', 'customers._id'] });
    expect(sources(result).at(-1)).toEqual(['', { 'customers._id': 'c3', 'customers.name': 'Cleo' }]);
    expect(result.hits.total).toEqual({ value: 4, relation: 'exact' });
  });

  test('shows what is asked for of each side', async () => {
    const one = { ...inOrder, limit: 1 };
    const shown = async (request: object) => (await ask({ ...one, ...request })).hits.hits[0]?._source;
    expect(await shown({ join: { ...byCustomer, right_fields: ['address.zip'] }, fields: ['item', '*'] })).toEqual({
      ...orders.o1,
      'customers.address': { zip: 'N1' },
    });
    expect(await shown({ join: byCustomer, fields: ['customers.name'] })).toEqual({ 'customers.name': 'Ada' });
    expect(await shown({ join: byCustomer, fields: ['item'] })).toEqual({ item: 'green tea' });
    expect(await shown({ join: { ...byCustomer, right_fields: ['_id'] }, fields: [] })).toBeUndefined();
    expect(await shown({ join: { ...byCustomer, right_fields: [] } })).toEqual(orders.o1);
    const ada = { 'customers._id': 'c1', 'customers.city': 'london', 'customers.name': 'Ada' };
    const right_fields = ['_id', 'city', 'name'];
    const { item: _, ...rest } = orders.o1;
    expect(await shown({ join: { ...byCustomer, right_fields }, fields: ['-item'] })).toEqual({ ...rest, ...ada });
    const { 'customers.city': __, ...noCity } = ada;
    for (const fields of [['-customers.city'], ['*', '-customers.city']]) {
      expect(await shown({ join: { ...byCustomer, right_fields }, fields })).toEqual({ ...orders.o1, ...noCity });
    }
    const { 'customers._id': ___, ...noKey } = ada;
    expect(await shown({ join: { ...byCustomer, right_fields }, fields: ['-customers._id'] })).toEqual({
      ...orders.o1,
      ...noKey,
    });
    expect(await shown({ join: byCustomer, fields: ['item', '-customers.city'] })).toEqual({ item: orders.o1.item });
  });

  test('has a `_source` for each hit of which something could be shown', async () => {
    const join = { ...byCustomer, join_type: 'left' };
    const named = await ask({ ...inOrder, join, fields: ['customers.name'] });
    expect(sources(named).slice(2)).toEqual([
      ['o3', { 'customers.name': 'Ada' }],
      ['o4', {}],
      ['o5', {}],
    ]);
    const none = await ask({ ...inOrder, join, fields: ['customers.nothing', '-item'] });
    expect(sources(none).map(([, source]) => source)).toEqual([{}, {}, {}, {}, {}]);
  });

  test('can be joined again, by a field of what was joined', async () => {
    const nested = { right_table: 'cities', on: { left_field: 'customers.city', right_field: '_id' } };
    const join = { ...byCustomer, right_fields: ['name'], nested_join: { ...nested, join_type: 'left' } };
    const result = await ask({ ...inOrder, join, fields: ['customers.name', 'cities.country'] });
    expect(sources(result)).toEqual([
      ['o1', { 'customers.name': 'Ada', 'cities.country': 'UK' }],
      ['o2', { 'customers.name': 'Bob', 'cities.country': 'FR' }],
      ['o3', { 'customers.name': 'Ada', 'cities.country': 'UK' }],
    ]);
  });

  test('takes the rows that its filters let through', async () => {
    const names = async (right_filters: object) => {
      const join = { ...byCustomer, join_type: 'right', right_filters };
      const { hits } = await ask({ join, ...inOrder });
      return [...new Set(hits.hits.map(({ _source }) => _source?.['customers.name']))];
    };
    expect(await names({ filter_query: { range: { age: { gt: 30 } } } })).toEqual(['Ada', 'Cleo']);
    expect(await names({ filter_prefix: 'c2' })).toEqual(['Bob']);
    expect(await names({ limit: 2 })).toEqual(['Ada', 'Bob']);
  });

  test.each([undefined, 'broadcast', 'index_lookup'])('finds rows by members that no index holds: %s', async (hint) => {
    const long = 'p'.repeat(1_025);
    for (const [at, member] of ['_ref', long, 'a\u0001b'].entries()) {
      await fill(server, `unnamed${at}`, { r1: { [member]: 'r1' }, r2: { [member]: 'r2' } });
      const join = {
        right_table: `unnamed${at}`,
        on: { left_field: member, right_field: member },
        strategy_hint: hint,
      };
      const { hits } = await ask({ table: `unnamed${at}`, join, order_by: [{ field: '_id' }] });
      expect([member.length, hits.total.value, hits.hits.map(({ _id }) => _id)]).toEqual([
        member.length,
        2,
        ['r1', 'r2'],
      ]);
    }
  });

  test.each([undefined, 'broadcast', 'index_lookup'])(
    'finds rows by values of another type than the schema gives their member: %s',
    async (hint) => {
      const properties = {
        code: { type: 'string', 'x-service-types': ['keyword'] },
        n: { type: 'integer' },
        on: { type: 'boolean' },
      };
      const document_schemas = { row: { schema: { type: 'object', properties } } };
      const rows = Array.from({ length: 20 }, (_, at) => [`r${at}`, { code: `c${at}`, n: at, on: at < 2 }]);
      const others = { number: { code: 7 }, truth: { code: true, n: true }, text: { n: 'x', on: 'x' } };
      await fill(server, 'loose', { ...Object.fromEntries(rows), ...others }, { schema: { document_schemas } });
      await fill(server, 'asking', { a: { by: [7, 'x', true] } });
      for (const [right_field, keys] of Object.entries({ code: ['number', 'truth'], n: ['r7', 'text', 'truth'] })) {
        const on = { left_field: 'by', right_field };
        const join = { right_table: 'loose', on, right_fields: ['_id', right_field], strategy_hint: hint };
        const { hits } = await ask({ table: 'asking', join });
        expect([right_field, hits.total.value]).toEqual([right_field, keys.length]);
      }
    },
  );

  test.each([undefined, 'broadcast', 'index_lookup'])(
    'finds the key of a number from either side: %s',
    async (strategy_hint) => {
      const more = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`x${at}`, { of: 100 + at }]));
      const document_schemas = { row: { schema: { type: 'object', properties: { of: { type: 'integer' } } } } };
      const pieces = { p1: { of: 7 }, p2: { of: [8, 7] }, p3: { of: '07' }, p4: { of: true }, ...more };
      await fill(server, 'pieces', pieces, { schema: { document_schemas } });
      await fill(server, 'wholes', { '7': {}, '8': {}, '9': {}, true: {} });
      const pairs = async (table: string, right_table: string, on: object) => {
        const join = { right_table, on, right_fields: ['_id'], strategy_hint };
        const { hits } = await ask({ table, join, order_by: [{ field: '_id' }], limit: 50 });
        return hits.hits.map(({ _id, _source }) => [_id, _source?.[`${right_table}._id`]]);
      };
      const wholes = await pairs('pieces', 'wholes', { left_field: 'of', right_field: '_id' });
      expect(wholes.toSorted()).toEqual([
        ['p1', '7'],
        ['p2', '7'],
        ['p2', '8'],
      ]);
      const turned = await pairs('wholes', 'pieces', { left_field: '_id', right_field: 'of' });
      expect(turned.map((pair) => pair.toReversed()).toSorted()).toEqual(wholes.toSorted());
      const others = await pairs('pieces', 'wholes', { left_field: 'of', right_field: '_id', operator: 'neq' });
      expect(others.filter(([key]) => key === 'p1').toSorted()).toEqual([
        ['p1', '8'],
        ['p1', '9'],
        ['p1', 'true'],
      ]);
    },
  );

  test('compares by other operators', async () => {
    const on = { left_field: 'total', right_field: 'age', operator: 'gt' };
    const result = await ask({
      ...inOrder,
      join: { right_table: 'customers', on },
      fields: ['total', 'customers.age'],
    });
    expect(sources(result)).toEqual([['o1', { total: 30, 'customers.age': 20 }]]);
  });

  test('keeps scores, highlights and explanations of its hits, in their order', async () => {
    const request = { full_text_search: { query: 'item:tea' }, highlight: { fields: ['item'] } };
    const alone = await ask(request);
    const joined = await ask({ ...request, join: byCustomer });
    const ranked = ({ hits }: Result) => hits.hits.map(({ _id, _score, _highlight }) => [_id, _score, _highlight]);
    expect(ranked(joined)).toEqual(ranked(alone));
    expect(joined.hits.hits).toHaveLength(2);
  });

  test('counts joined rows, and aggregates hits', async () => {
    const about = { right_table: 'notes', on: { left_field: 'customer', right_field: 'about' } };
    const aggregations = { spent: { type: 'sum', field: 'total' } };
    const result = await ask({ join: about, aggregations, limit: 0 });
    expect(result.aggregations?.spent).toMatchObject({ value: 65 });
    const counted = await ask({ join: about, count: true });
    expect(counted.hits).toMatchObject({ total: { value: 5, relation: 'exact' }, hits: [] });
  });

  test('sees what was just written on both sides', async () => {
    await server.send('POST', '/db/v1/batch', {
      tables: {
        customers: { inserts: { c9: { name: 'New' } } },
        orders: { inserts: { o9: { customer: 'c9', item: 'new' } } },
      },
      sync_level: 'propose',
    });
    const result = await ask({ join: byCustomer, filter_query: { ids: ['o9'] }, wait_for_index_ms: 5_000 });
    expect(result.hits.hits[0]?._source).toMatchObject({ 'customers.name': 'New' });
    await server.send('POST', '/db/v1/batch', {
      tables: { customers: { deletes: ['c9'] }, orders: { deletes: ['o9'] } },
      sync_level: 'full_index',
    });
  });
});

describe('pages of joined rows', () => {
  beforeAll(async () => {
    const rows = Array.from({ length: 1_000 }, (_, at) => [
      `e${String(at).padStart(4, '0')}`,
      { n: at, group: at % 7 },
    ]);
    await fill(server, 'events', Object.fromEntries(rows), { num_shards: 3 });
    const marks = Array.from({ length: 40 }, (_, at) => [`m${at}`, { of: at * 25, label: `mark ${at}` }]);
    await fill(server, 'marks', Object.fromEntries(marks));
    const schema = {
      document_schemas: {
        d: {
          schema: {
            type: 'object',
            properties: {
              code: { type: 'string', 'x-service-types': ['keyword'] },
              words: { type: 'string', 'x-service-types': ['text'] },
            },
          },
        },
      },
      default_type: 'd',
    };
    const parts = Array.from({ length: 400 }, (_, at) => [`p${at}`, { code: `K${at}`, words: `K${at}` }]);
    await fill(server, 'parts', Object.fromEntries(parts), { schema });
  });

  const marked = { right_table: 'marks', on: { left_field: 'n', right_field: 'of' } };

  test('are full although few hits have a row, by any order', async () => {
    for (const order_by of [undefined, [{ field: 'n', desc: true }]]) {
      const request = {
        table: 'events',
        join: marked,
        limit: 30,
        fields: ['n', 'marks.label'],
        ...(order_by && { order_by }),
      };
      const result = await ask(request);
      expect(result.hits.hits).toHaveLength(30);
      expect(new Set(result.hits.hits.map(({ _id }) => _id)).size).toBe(30);
      const last = await ask({ ...request, offset: 30 });
      expect(last.hits).toMatchObject({ total: { value: 40, relation: 'exact' } });
      expect(last.hits.hits).toHaveLength(10);
      expect(last.partial).toBeUndefined();
    }
  });

  test('go on by cursor within the rows of one hit', async () => {
    const join = { right_table: 'events', on: { left_field: 'group', right_field: 'group' } };
    const request = { table: 'events', join, order_by: [{ field: 'n' }], fields: ['n', 'events.n'], limit: 100 };
    const first = await ask(request);
    const second = await ask({ ...request, search_after: first.hits.hits.at(-1)?._sort });
    const pairs = [first, second].flatMap(({ hits }) => hits.hits.map(({ _source }) => _source));
    const expected = Array.from({ length: 143 }, (_, at) => ({ n: 0, 'events.n': at * 7 }));
    const next = Array.from({ length: 57 }, (_, at) => ({ n: 1, 'events.n': at * 7 + 1 }));
    expect(pairs).toEqual([...expected, ...next]);
    expect(first.hits.total.relation).toBe('gte');
    const wrong = await server.send('POST', '/db/v1/query', {
      ...request,
      join: marked,
      search_after: first.hits.hits.at(-1)?._sort,
    });
    expect(wrong.body).toMatchObject({ code: 'invalid_query' });
  });

  test('count rows with and without a pair in the profile', async () => {
    const counts = async (join_type: string) => {
      const join = { ...marked, join_type };
      const filter_query = { range: { n: { lt: 50 } } };
      const { profile } = await ask({ table: 'events', join, filter_query, limit: 1_000, profile: true });
      const { left_rows_scanned, rows_matched, rows_unmatched_left, rows_unmatched_right } = profile?.join ?? {};
      return [left_rows_scanned, rows_matched, rows_unmatched_left, rows_unmatched_right];
    };
    expect(await counts('left')).toEqual([50, 2, 48, undefined]);
    expect(await counts('right')).toEqual([50, 2, 48, 38]);
  });

  test('say how rows were found: by key, an index or a hash, as few rows are looked at', async () => {
    const strategy = async (table: string, join: object, filter_query: object) => {
      const { profile } = await ask({ table, join, filter_query, profile: true });
      const { strategy_used, access, right_rows_scanned, rows_matched } = profile?.join ?? {};
      return [strategy_used, access, right_rows_scanned, rows_matched];
    };
    const one = { term: 3, field: 'n' };
    const few = { range: { n: { lt: 5 } } };
    const all = { match_all: {} };
    const self = (on: object, more: object = {}) => ({ right_table: 'events', on, ...more });
    const byN = { left_field: 'n', right_field: 'n' };
    const byKey = { left_field: '_id', right_field: '_id' };
    expect(await strategy('events', self(byKey), few)).toEqual(['index_lookup', 'key', 5, 5]);
    expect(await strategy('events', self(byN), few)).toEqual(['index_lookup', 'index', 5, 5]);
    expect(await strategy('events', self(byN, { strategy_hint: 'broadcast' }), one)).toEqual([
      'broadcast',
      'hash',
      1_000,
      1,
    ]);
    expect((await strategy('events', marked, all)).slice(0, 3)).toEqual(['broadcast', 'hash', 40]);
    expect((await strategy('events', self({ ...byN, operator: 'lt' }), one)).slice(0, 2)).toEqual([
      'broadcast',
      'comparison',
    ]);
    const ofPart = (right_field: string) => ({ right_table: 'parts', on: { left_field: 'code', right_field } });
    const part = { ids: ['p7'] };
    expect(await strategy('parts', ofPart('code'), part)).toEqual(['index_lookup', 'index', 1, 1]);
    // Words have no whole value in an index.
    expect(await strategy('parts', ofPart('words'), part)).toEqual(['broadcast', 'hash', 400, 1]);
  });

  test('need not look at hits that cannot have a row, where few rows can', async () => {
    const profile = async (join: object, more: object = {}) => {
      const request = { table: 'events', full_text_search: { match_all: {} }, limit: 1_000, profile: true };
      const result = await ask({ ...request, join, ...more });
      expect(result.hits.total).toEqual({ value: 40, relation: 'exact' });
      return result.profile?.join;
    };
    expect(await profile(marked)).toMatchObject({ left_rows_scanned: 40, right_rows_scanned: 40 });
    const on = { left_field: 'n', right_field: 'n' };
    const narrow = { filter_query: { ids: Array.from({ length: 40 }, (_, at) => `e${String(at).padStart(4, '0')}`) } };
    expect(await profile({ right_table: 'events', on, right_filters: narrow })).toMatchObject({
      left_rows_scanned: 40,
    });
    // They are all counted by aggregations.
    const aggregations = { all: { type: 'count', field: 'n' } };
    expect(await profile(marked, { aggregations })).toMatchObject({ left_rows_scanned: 1_000 });
  });

  test('of vectors look further than the nearest until the page is full', async () => {
    const indexes = { v: { type: 'embeddings', external: true, dimension: 2 } };
    const rows = Array.from({ length: 300 }, (_, at) => [`v${at}`, { n: at, _embeddings: { v: [at + 1, 1] } }]);
    await fill(server, 'points', Object.fromEntries(rows), { indexes });
    const result = await ask({ table: 'points', join: marked, embeddings: { v: [1, 1] }, limit: 5, fields: ['n'] });
    expect(result.hits.hits.map(({ _source }) => _source?.n)).toEqual([0, 25, 50, 75, 100]);
  });
});

describe('a join whose rows are many', () => {
  const byGroup = { right_table: 'alike', on: { left_field: 'group', right_field: 'group' } };

  beforeAll(async () => {
    const rows = Array.from({ length: 4_000 }, (_, at) => [`a${at}`, { group: 'same', n: at }]);
    await fill(server, 'alike', Object.fromEntries(rows));
  });

  test('ends with the time of its query, as a part where that is asked for', async () => {
    const result = await ask({ table: 'alike', join: byGroup, count: true, timeout_ms: 60 });
    expect(result).toMatchObject({ partial: true, hits: { total: { relation: 'gte' } } });
    expect(result.hits.total.value).toBeLessThan(16_000_000);
  });

  test('is refused where its page would be longer than a page may be', async () => {
    await fill(server, 'long', { same: { text: 'x'.repeat(1_000_000) } });
    const join = { right_table: 'long', on: { left_field: 'group', right_field: '_id' } };
    const request = { table: 'alike', join, limit: 600 };
    const { status, body } = await server.send('POST', '/db/v1/query', request);
    expect([status, body.code]).toEqual([400, 'limit_exceeded']);
    const { hits } = await ask({ ...request, fields: ['n', 'long._id'] });
    expect(hits.hits[0]?._source).toEqual({ n: 0, 'long._id': 'same' });
  });

  test('finds the keys NaN and Infinity like others', async () => {
    await fill(server, 'words', { NaN: { at: 1 }, Infinity: { at: 2 }, '7': { at: 3 } });
    await fill(server, 'said', { a: { word: 'NaN' }, b: { word: 'Infinity' }, c: { word: 7 }, d: { word: 'other' } });
    const join = { right_table: 'words', on: { left_field: 'word', right_field: '_id' } };
    const { hits } = await ask({ table: 'said', join, fields: ['words.at'] });
    expect(hits.hits.map(({ _id, _source }) => [_id, _source?.['words.at']])).toEqual([
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ]);
  });
});

test('a graph search begins at each hit of joined rows once', async () => {
  const edgeTo = (target: string) => ({ _edges: { links: { to: [{ target }] } } });
  const inserts = { a: { g: 1, ...edgeTo('x') }, b: { g: 1, ...edgeTo('y') }, x: {}, y: {} };
  await fill(server, 'linked', inserts, { indexes: { links: { type: 'graph' } } });
  await fill(server, 'rows', { r1: { g: 1 }, r2: { g: 1 }, r3: { g: 2 } });
  const join = { right_table: 'rows', join_type: 'right', on: { left_field: 'g', right_field: 'g' } };
  const start_nodes = { result_ref: '$full_text_results', limit: 2 };
  const result = await ask({
    table: 'linked',
    join,
    ...inOrder,
    graph_searches: { next: { type: 'neighbors', index_name: 'links', start_nodes } },
  });
  expect(result.hits.hits.map(({ _id }) => _id)).toEqual(['a', 'a', 'b', 'b', '']);
  const { nodes } = (result as unknown as { graph_results: { next: { nodes: { key: string }[] } } }).graph_results.next;
  expect(nodes.map(({ key }) => key)).toEqual(['x', 'y']);
});

test('what cannot be joined is refused by name', async () => {
  const right = { ...byCustomer, join_type: 'right' };
  const refused: [object, string, number][] = [
    [{ join: { ...byCustomer, right_table: 'nowhere' } }, 'table_not_found', 404],
    [{ join: { ...byCustomer, on: {} } }, 'invalid_query', 400],
    [{ join: { ...byCustomer, on: { ...byCustomer.on, operator: '=' } } }, 'invalid_query', 400],
    [{ join: { ...byCustomer, join_type: 'outer' } }, 'invalid_query', 400],
    [{ join: { ...byCustomer, right_filter: {} } }, 'invalid_query', 400],
    [{ join: { ...byCustomer, right_filters: { filter_query: { nothing: 1 } } } }, 'invalid_query', 400],
    [{ join: { ...byCustomer, nested_join: byCustomer } }, 'invalid_query', 400],
    [{ join: byCustomer, order_by: [{ field: 'customers._score' }] }, 'invalid_query', 400],
    [{ join: byCustomer, reranker: { provider: 'service', model: 'm', field: 'item' } }, 'invalid_query', 400],
    [{ join: right, ...inOrder, search_after: ['o1', 'x'] }, 'invalid_query', 400],
  ];
  for (const [request, code, status] of refused) {
    const answer = await server.send('POST', '/db/v1/query', { table: 'orders', ...request });
    expect(answer, JSON.stringify(request)).toMatchObject({ status, body: { code } });
  }
});

test('each side is under its own grant and row filter, and a join tells nothing of hidden rows', async () => {
  await using guarded = await startGuardedServer();
  for (const [name, inserts] of Object.entries({ customers, orders })) {
    await guarded.asAdmin('POST', `/db/v1/tables/${name}`);
    await guarded.asAdmin('POST', `/db/v1/tables/${name}/batch`, { inserts, sync_level: 'full_index' });
  }
  const query = (credential: string, more: object = {}) =>
    guarded.as(credential, 'POST', '/db/v1/query', { table: 'orders', join: byCustomer, ...inOrder, ...more });
  const left = await guarded.user('left', [grant('orders', 'read')]);
  expect((await query(left)).body).toMatchObject({ code: 'table_not_found' });
  const both = await guarded.user('both', [grant('orders', 'read'), grant('customers', 'read')]);
  await guarded.asAdmin('PUT', '/auth/v1/users/both/row-filters/customers', { range: { age: { lt: 30 } } });
  await guarded.asAdmin('PUT', '/auth/v1/users/both/row-filters/orders', { range: { total: { gte: 10 } } });
  for (const strategy_hint of ['broadcast', 'index_lookup']) {
    const join = { ...byCustomer, join_type: 'left', strategy_hint };
    const { body } = await query(both, { join, fields: ['customers.name'] });
    expect((body as unknown as { responses: [Result] }).responses[0].hits).toMatchObject({
      total: { value: 3, relation: 'exact' },
      hits: [{ _id: 'o1' }, { _id: 'o2', _source: { 'customers.name': 'Bob' } }, { _id: 'o3' }],
    });
    expect(JSON.stringify(body)).not.toContain('Ada');
  }
  expect((await query(both, { profile: true })).body).toMatchObject({ code: 'forbidden' });
});

test('documents that have expired are not joined', async () => {
  const schema = { ttl: { duration: '1h', field: 'at' } };
  await fill(
    server,
    'sessions',
    { s1: { at: '2020-01-01T00:00:00Z' }, s2: { at: new Date(Date.now()).toISOString() } },
    {
      schema,
    },
  );
  await fill(server, 'visits', { a: { of: 's1' }, b: { of: 's2' } });
  for (const strategy_hint of ['broadcast', 'index_lookup']) {
    const join = { right_table: 'sessions', on: { left_field: 'of', right_field: '_id' }, strategy_hint };
    const result = await ask({ table: 'visits', join });
    expect(result.hits.hits.map(({ _id }) => _id)).toEqual(['b']);
  }
});

test('a join keeps the ranges of its right side open while others need their place', async () => {
  await using crowded = await startTestServer({ environment: { SUNDEW__STORAGE__OPEN_RANGES: '1' } });
  await fill(crowded, 'customers', customers, { num_shards: 2 });
  await fill(crowded, 'orders', orders);
  await fill(crowded, 'others', { a: {} });
  const { all } = RightTable.prototype;
  using _spied = spyOn(RightTable.prototype, 'all').mockImplementationOnce(async function (this: RightTable) {
    for (let at = 0; at < 3; at += 1) await crowded.send('POST', '/db/v1/tables/others/query', { limit: 1 });
    return all.call(this);
  });
  const answer = await crowded.send<{ responses: [Result] }>('POST', '/db/v1/tables/orders/query', {
    filter_query: { match_all: {} },
    join: { right_table: 'customers', on: { left_field: 'customer', right_field: '_id' } },
  });
  expect([answer.status, answer.body.responses?.[0].hits.total]).toEqual([200, { value: 3, relation: 'exact' }]);
});
