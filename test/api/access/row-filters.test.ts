import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { RowFilters } from '../../../src/access/principal.ts';
import { clusterRoutes } from '../../../src/http/database/cluster.ts';
import { tableRoutes } from '../../../src/http/database/tables.ts';
import type { Database } from '../../../src/server/database/open-database.ts';
import { bodyOf, openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

interface Result {
  hits: { total: { value: number; relation: string }; hits: { _id: string; _source?: { kind: string } }[] };
  aggregations?: Record<string, { buckets?: { key: string; doc_count: number }[]; value?: number }>;
}

const directory = new TemporaryDirectory();
let database: Database;
const owner = testCaller();

/** Somebody who sees the documents that match, of the table `notes`. */
const seeing = (...filters: object[]) => testCaller({ rowFilter: { notes: filters } });
const tv = seeing({ term: { kind: 'tv' } });

async function query(request: object, caller = tv): Promise<Result> {
  const [answer = []] = await database.services.queries.run('notes', bodyOf(request), caller);
  return JSON.parse(answer.join('')) as Result;
}

const keysOf = ({ hits }: Result) => hits.hits.map(({ _id }) => _id);

async function scan(request: object, caller = tv): Promise<string[]> {
  const lines: string[] = [];
  for await (const page of await database.services.documents.scan('notes', request, caller)) lines.push(...page);
  return lines.map((line) => (JSON.parse(line) as { key: string }).key);
}

const refusal = (code: string) => expect.objectContaining({ code });

beforeAll(async () => {
  database = await openTestDatabase(directory.path);
  const { tables, writes } = database.services;
  await tables.create('notes', { num_shards: 3, schema: { synonyms: ['tv, television'] } }, owner);
  await tables.create('open', {}, owner);
  const inserts = {
    a: { kind: 'tv', text: 'the amber hall', n: 1 },
    b: { kind: 'television', text: 'amber and birch', n: 2 },
    z: { kind: 'tv', text: 'birch', n: 3 },
    y: { text: 'amber', n: 4 },
  };
  await writes.batch('notes', bodyOf({ inserts, sync_level: 'full_index' }), owner);
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

describe('a caller with a row filter', () => {
  test('reads what the filter permits and nothing else', async () => {
    const order_by = [{ field: 'n' }];
    expect(keysOf(await query({ order_by }))).toEqual(['a', 'z']);
    expect(keysOf(await query({ full_text_search: { match: 'amber' } }))).toEqual(['a']);
    expect(keysOf(await query({ full_text_search: { ref: 'x' }, with: { x: { match: 'amber' } } }))).toEqual(['a']);
    expect((await query({ count: true })).hits.total).toEqual({ value: 2, relation: 'exact' });
    expect(await scan({})).toEqual(['a', 'z']);
    expect(await scan({ filter_query: { match: 'amber' } })).toEqual(['a']);
    const { documents } = database.services;
    expect((await documents.lookup('notes', 'a', undefined, tv)).version).toBeGreaterThan(0);
    for (const key of ['b', 'y', 'none']) {
      await expect(documents.lookup('notes', key, undefined, tv)).rejects.toEqual(refusal('key_not_found'));
    }
  });

  test('is told of no hidden value by an aggregation, its background or an empty bucket', async () => {
    const aggregations = {
      kinds: { type: 'terms', field: 'kind', min_doc_count: 0 },
      significant: { type: 'significant_terms', field: 'kind' },
      sum: { type: 'sum', field: 'n' },
    };
    const { aggregations: found } = await query({ filter_query: { match: 'birch' }, aggregations });
    expect(found?.kinds?.buckets).toEqual([{ key: 'tv', doc_count: 1 }]);
    expect(JSON.stringify(found)).not.toContain('television');
    expect(found?.sum?.value).toBe(3);
  });

  test('does not get around it by synonyms, typos, or a filter that asks for nothing', async () => {
    const slip = seeing({ match: 'birhc', field: 'text' });
    expect(keysOf(await query({ typo_tolerance: true, full_text_search: { match: 'birhc' } }, slip))).toEqual([]);
    expect(keysOf(await query({}, seeing({ match: 'the' })))).toEqual([]);
    expect(keysOf(await query({}, seeing({ match: 'the' }, { term: { kind: 'tv' } })))).toEqual([]);
    expect(keysOf(await query({}, testCaller({ rowFilter: { notes: [] } })))).toEqual([]);
    const both: RowFilters = { notes: { term: { kind: 'tv' } }, '*': { match: 'birch', field: 'text' } };
    expect(keysOf(await query({}, testCaller({ rowFilter: both })))).toEqual(['z']);
  });

  test.each([{ explain: true }, { profile: true }])(
    'may not ask for %j, which tells of all documents',
    async (asked) => {
      await expect(query(asked)).rejects.toEqual(refusal('forbidden'));
      expect((await query(asked, owner)).hits.hits).toHaveLength(4);
    },
  );

  test('may not administer or count the table, but any other one', async () => {
    const { writes, indexes, tables, artifacts } = database.services;
    const insert = { inserts: { q: { kind: 'tv' } } };
    const forbidden = [
      () => artifacts.put('notes', 'copy', { kind: 'asset', field: 'text' }, tv),
      () => artifacts.drop('notes', 'copy', tv),
      () => indexes.list('notes', tv),
      () => indexes.get('notes', 'full_text_index_v0', tv),
      () => tables.updateSchema('notes', {}, tv),
      () => tables.drop('notes', tv),
    ];
    for (const call of forbidden) await expect(call()).rejects.toEqual(refusal('forbidden'));
    expect(await writes.batch('open', bodyOf(insert), tv)).toMatchObject({ status: 'committed' });
    expect(await indexes.list('open', tv)).toHaveLength(1);
  });

  test('is told what a table is, and not how much it holds', async () => {
    const { tables } = database.services;
    const [list] = tableRoutes(tables);
    const told = (await list?.handler({ caller: tv, query: {}, params: {} } as never)) as object[];
    expect(told).toMatchObject([{ name: 'notes' }, { name: 'open', storage_status: { empty: false } }]);
    expect(told[0]).not.toHaveProperty('storage_status');
    const source = { tables: () => tables.all(), dataDirectory: directory.path, apiUrl: () => '', authEnabled: true };
    const node = { health: 'healthy', message: '', disk: { health: 'healthy', message: '' }, ranges: [] } as const;
    const config = { generation: 1, hash: '', lastReloadFailed: false, stale: false };
    const state = { ...config, reloadSuccesses: 0, reloadFailures: 0 };
    const [, topology] = clusterRoutes({
      ...source,
      health: () => ({ ...node, ranges: [] }),
      config: () => state,
      providers: () => [],
      ownModels: () => ({ requests: 0, failures: 0, tokens: 0 }),
      secrets: () => ({ ...state, sourceGeneration: '' }),
    });
    const answer = (await topology?.handler({ caller: tv } as never)) as { data: { ranges: { table_name: string }[] } };
    expect(answer.data.ranges.map(({ table_name }) => table_name)).toEqual(['open']);
  });

  test('pages by cursor through what it may see', async () => {
    const order_by = [{ field: 'text' }];
    const first = (await query({ order_by, limit: 1 })).hits.hits[0] as unknown as { _id: string; _sort: unknown[] };
    const second = await query({ order_by, limit: 5, search_after: first._sort });
    expect([first._id, ...keysOf(second)]).toEqual(['z', 'a']);
  });

  test('that cannot be read, and one without words on a table without them, permit nothing', async () => {
    await expect(query({}, seeing({ trem: { kind: 'tv' } }))).rejects.toEqual(refusal('invalid_query'));
    await expect(scan({}, seeing({}))).rejects.toEqual(refusal('invalid_query'));
  });
});

test('a document that became hidden a moment ago is in no answer, whatever the index shows', async () => {
  const { writes, documents } = database.services;
  for (let round = 0; round < 20; round += 1) {
    const write = (kind: string) => writes.batch('notes', bodyOf({ inserts: { m: { kind, n: 5 } } }), owner);
    await write('tv');
    await query({ wait_for_index_ms: 5_000 });
    await write('secret');
    const aggregations = { kinds: { type: 'terms', field: 'kind' } };
    const answer = await query({ aggregations, limit: 0 });
    expect(keysOf(await query({}))).not.toContain('m');
    expect(answer.aggregations?.kinds?.buckets).toEqual([{ key: 'tv', doc_count: 2 }]);
    await write('tv');
    await write('secret');
    expect(await scan({})).not.toContain('m');
    await expect(documents.lookup('notes', 'm', undefined, tv)).rejects.toEqual(refusal('key_not_found'));
  }
  await writes.batch('notes', bodyOf({ deletes: ['m'], sync_level: 'full_index' }), owner);
});

test('no reader is shown the body of a document that was hidden, while it changes to and fro', async () => {
  const { tables, writes, documents, graphs } = database.services;
  const keys = Array.from({ length: 40 }, (_, at) => `k${at}`);
  await tables.create('flips', { num_shards: 2, indexes: { near: { type: 'graph' } } }, owner);
  const to = keys.map((target) => ({ target }));
  const write = (kind: string) => {
    const inserts = keys.map((key) => [key, { kind, ...(key === 'k0' ? { _edges: { near: { to } } } : {}) }]);
    return writes.batch('flips', bodyOf({ inserts: Object.fromEntries(inserts) }), owner);
  };
  const caller = testCaller({ rowFilter: { flips: { term: { kind: 'tv' } } } });
  const shown = new Set<string>();
  const look = async () => {
    for await (const page of await documents.scan('flips', { fields: ['kind'] }, caller)) {
      for (const line of page) shown.add((JSON.parse(line) as { kind: string }).kind);
    }
    const request = { start: 'k0', include_documents: true, max_depth: 1 };
    const found = JSON.parse(await graphs.traverse('flips', 'near', request, caller)) as {
      results: { document?: { kind: string } }[];
    };
    for (const { document } of found.results) if (document) shown.add(document.kind);
  };
  await write('tv');
  for (let round = 0; round < 40; round += 1) {
    await Promise.all([look(), write(round % 2 === 0 ? 'secret' : 'tv'), look()]);
  }
  await look();
  expect([...shown]).toEqual(['tv']);
}, 120_000);
