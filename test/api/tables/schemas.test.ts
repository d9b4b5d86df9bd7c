import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { CatalogStore } from '../../../src/storage/catalog/catalog-store.ts';
import { until } from '../../support/fault/until.ts';
import { hitKeys, startTestServer, type TestServer } from '../../support/test-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

function schemaOf(properties: object, more: object = {}) {
  return { default_type: 'd', document_schemas: { d: { schema: { type: 'object', properties } } }, ...more };
}

async function find(table: string, query: unknown): Promise<string[]> {
  return hitKeys(await server.send('POST', `/db/v1/tables/${table}/query`, { full_text_search: query }));
}

describe('the record of a table', () => {
  test('tells what queries can do with the fields that its schema declares', async () => {
    const properties = {
      title: { type: 'string', 'x-service-types': ['text', 'search_as_you_type'], 'x-service-include-in-all': true },
      inner: { type: 'object', properties: { year: { type: 'integer' } } },
    };
    const created = await server.send('POST', '/db/v1/tables/capable', { schema: schemaOf(properties) });
    const title = { types: ['search_as_you_type', 'text'], searchable: true, filterable: false, sortable: true };
    const year = { types: ['numeric'], searchable: false, filterable: true, sortable: true };
    const capabilities = {
      title: { ...title, aggregatable: false, in_all: true },
      'inner.year': { ...year, aggregatable: true, in_all: false },
    };
    expect(created.body.field_capabilities).toEqual(capabilities);
    const shown = async () => (await server.send('GET', '/db/v1/tables/capable')).body.field_capabilities;
    expect(await shown()).toEqual(capabilities);
    await server.send('PUT', '/db/v1/tables/capable/schema', schemaOf({ tag: { type: 'boolean' } }));
    await until(async () => 'tag' in ((await shown()) as object));
    expect(await shown()).toEqual({ tag: { ...year, types: ['boolean'], aggregatable: true, in_all: false } });
  });
});

describe('a schema', () => {
  test('whose keywords for one property stand in several parts is read as one that has them together', async () => {
    const keyword = { 'x-service-types': ['keyword'] };
    const properties = {
      code: { description: 'a reference with a text', allOf: [{ $ref: '#/$defs/code' }] },
      both: { allOf: [{ type: 'string' }, keyword] },
      number: { allOf: [{ allOf: [{ type: 'integer' }] }, { minimum: 1 }] },
      hidden: { type: 'string', allOf: [{ 'x-service-index': false }] },
      list: { type: 'array', items: { allOf: [keyword] } },
      own: { ...keyword, allOf: [{ 'x-service-types': ['text'] }] },
    };
    const parts = [{ properties: { spread: { type: 'string' } } }, { properties: { spread: keyword } }];
    const schema = { type: 'object', properties, allOf: parts, $defs: { code: { type: 'string', ...keyword } } };
    const settings = { schema: { document_schemas: { d: { schema } } } };
    const { body } = await server.send('POST', '/db/v1/tables/combined', settings);
    const capabilities = body.field_capabilities as Record<string, { types: string[] }>;
    expect(Object.fromEntries(Object.entries(capabilities).map(([path, { types }]) => [path, types]))).toEqual({
      code: ['keyword'],
      both: ['keyword'],
      number: ['numeric'],
      hidden: [],
      list: ['keyword'],
      own: ['keyword'],
      spread: ['keyword'],
    });
    // A number in a field of whole strings is found as its text alone.
    const inserts = Object.fromEntries(
      Array.from({ length: 300 }, (_, at) => [`k${at}`, { both: at, code: `c${at}` }]),
    );
    await server.send('POST', '/db/v1/tables/combined/batch', { inserts, sync_level: 'full_text' });
    await server.send('POST', '/db/v1/tables/asking', {});
    const asking = { a: { n: 7, c: 'c7' } };
    await server.send('POST', '/db/v1/tables/asking/batch', { inserts: asking, sync_level: 'full_text' });
    for (const [left_field, right_field] of [
      ['n', 'both'],
      ['c', 'code'],
    ]) {
      const join = { right_table: 'combined', on: { left_field, right_field } };
      const answer = await server.send('POST', '/db/v1/tables/asking/query', { join, fields: ['combined._id'] });
      expect(JSON.stringify(answer.body)).toContain('k7');
    }
  });

  test('that is enforced refuses unknown types, undeclared fields and wrong values, and writes nothing', async () => {
    const schema = schemaOf({ n: { type: 'integer', minimum: 1 } }, { enforce_types: true });
    await server.send('POST', '/db/v1/tables/strict', { schema });
    for (const document of [{ n: 0 }, { n: 'x' }, { m: 1 }, { _type: 'other', n: 1 }]) {
      const answer = await server.send('POST', '/db/v1/tables/strict/batch', {
        inserts: { good: { n: 1 }, bad: document },
      });
      expect(answer.body).toMatchObject({ code: 'validation_failed' });
      expect(String(answer.body.message)).toContain('bad');
    }
    expect((await server.send('GET', '/db/v1/tables/strict/lookup/good')).status).toBe(404);
    expect((await server.send('POST', '/db/v1/tables/strict/batch', { inserts: { a: { n: 2 } } })).status).toBe(201);
  });

  test('that is not enforced stores what does not match it', async () => {
    await server.send('POST', '/db/v1/tables/lax', { schema: schemaOf({ n: { type: 'integer' } }) });
    expect((await server.send('POST', '/db/v1/tables/lax/batch', { inserts: { a: { n: 'x' } } })).status).toBe(201);
  });

  test('finds numbers and booleans that a field of strings was given by themselves, and by their texts', async () => {
    const properties = {
      plain: { type: 'string' },
      whole: { type: 'string', 'x-service-types': ['keyword'] },
      words: { type: 'string', 'x-service-types': ['text'] },
      number: { type: 'number' },
    };
    const document = (value: unknown) => Object.fromEntries(Object.keys(properties).map((field) => [field, value]));
    await server.send('POST', '/db/v1/tables/literals', { num_shards: 2, schema: schemaOf(properties) });
    await server.send('POST', '/db/v1/tables/literals/batch', {
      inserts: { a: document(10115), m: document('10115'), t: document(true), z: document(7.5) },
      sync_level: 'full_text',
    });
    for (const field of ['plain', 'whole', 'words']) {
      expect(await find('literals', { term: 10115, field })).toEqual(['a', 'm']);
      expect(await find('literals', { term: '10115', field })).toEqual(['a', 'm']);
      expect(await find('literals', { terms: { [field]: [7.5, true] } })).toEqual(['t', 'z']);
      expect(await find('literals', { bool: true, field })).toEqual(['t']);
      expect(await find('literals', { bool: { must_not: { term: { [field]: 10115 } } } })).toEqual(['t', 'z']);
    }
    expect(await find('literals', { term: 10115, field: 'number' })).toEqual(['a']);
    expect(await find('literals', { term: '10115', field: 'number' })).toEqual([]);
  });

  test.each(['x-service-types', 'x-antfly-types'])('decides by %s how a field is searched', async (keyword) => {
    const table = keyword.slice(2, 9);
    const properties = {
      title: { type: 'string', [keyword]: ['text', 'keyword'] },
      tag: { type: 'string', [keyword]: ['keyword'] },
      secret: { type: 'string', [keyword]: ['blob'] },
    };
    await server.send('POST', `/db/v1/tables/${table}`, { schema: schemaOf(properties) });
    await server.send('POST', `/db/v1/tables/${table}/batch`, {
      inserts: { a: { title: 'Running Shoes', tag: 'Big Sale', secret: 'xyzzy' } },
      sync_level: 'full_text',
    });
    expect(await find(table, { query: 'title:run' })).toEqual(['a']);
    expect(await find(table, { term: 'Running Shoes', field: 'title.keyword' })).toEqual(['a']);
    expect(await find(table, { term: 'Big Sale', field: 'tag' })).toEqual(['a']);
    expect(await find(table, { query: 'tag:sale' })).toEqual([]);
    expect(await find(table, { query: 'secret:xyzzy' })).toEqual([]);
  });

  test.each([
    ['on the property', { title: { type: 'string', 'x-service-include-in-all': true }, body: { type: 'string' } }, {}],
    [
      'on the object',
      { title: { type: 'string' }, body: { type: 'string' } },
      { 'x-service-include-in-all': ['title'] },
    ],
  ])('opts fields into field-less search %s', async (_, properties, onObject) => {
    const table = `all-${Object.keys(onObject).length}`;
    const schema = {
      default_type: 'd',
      document_schemas: { d: { schema: { type: 'object', properties, ...onObject } } },
    };
    await server.send('POST', `/db/v1/tables/${table}`, { schema });
    await server.send('POST', `/db/v1/tables/${table}/batch`, {
      inserts: { a: { title: 'comet', body: 'asteroid' } },
      sync_level: 'full_text',
    });
    expect(await find(table, { query: 'comet' })).toEqual(['a']);
    expect(await find(table, { query: 'asteroid' })).toEqual([]);
    expect(await find(table, { query: 'body:asteroid' })).toEqual(['a']);
  });

  test('a dynamic template decides for fields that are not declared', async () => {
    await server.send('POST', '/db/v1/tables/dynamic', {
      schema: { dynamic_templates: [{ name: 'ids', match: '*_id', mapping: { type: 'keyword' } }] },
    });
    await server.send('POST', '/db/v1/tables/dynamic/batch', {
      inserts: { a: { order_id: 'AB 12', note: 'AB 12' } },
      sync_level: 'full_text',
    });
    expect(await find('dynamic', { query: 'order_id:ab' })).toEqual([]);
    expect(await find('dynamic', { term: 'AB 12', field: 'order_id' })).toEqual(['a']);
    expect(await find('dynamic', { query: 'note:ab' })).toEqual(['a']);
  });

  test('a change of templates alone rebuilds nothing: what is found stays found, new documents follow the new rules', async () => {
    const table = '/db/v1/tables/templates';
    const templates = (type: string) => ({ dynamic_templates: [{ match: 'code*', mapping: { type } }] });
    const write = (key: string) =>
      server.send('POST', `${table}/batch`, {
        inserts: { [key]: { code: 'Red Fox', note: 'heron' } },
        sync_level: 'full_text',
      });
    await server.send('POST', table, { schema: templates('text') });
    await write('old');
    const changed = await server.send('PUT', `${table}/schema`, templates('keyword'));
    expect(changed.body.migration).toBeUndefined();
    expect(await find('templates', { query: 'note:heron' })).toEqual(['old']);
    await write('new');
    expect(await find('templates', { term: 'Red Fox', field: 'code' })).toContain('new');
    const { body } = await server.send<{ status: { rebuilding: boolean; doc_count: number } }>(
      'GET',
      `${table}/indexes/full_text_index_v0`,
    );
    expect(body.status).toMatchObject({ rebuilding: false, doc_count: 2 });
  });

  test('a change of types rebuilds full text in the background and swaps', async () => {
    const table = '/db/v1/tables/evolve';
    await server.send('POST', table, {
      num_shards: 2,
      schema: schemaOf({ tag: { type: 'string', 'x-service-types': ['text'] } }),
    });
    const inserts = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, n) => [`${n % 2 ? 'a' : 'z'}${n}`, { tag: `Red ${n}` }]),
    );
    await server.send('POST', `${table}/batch`, { inserts, sync_level: 'full_text' });
    const changed = await server.send(
      'PUT',
      `${table}/schema`,
      schemaOf({ tag: { type: 'string', 'x-service-types': ['keyword'] } }),
    );
    expect(changed.body).toMatchObject({ schema: { version: 1 }, migration: { state: 'rebuilding' } });
    expect(await find('evolve', { query: 'tag:red AND tag:7' })).toEqual(['a7']);
    // Shown by the old index, so it must be shown by the new one from the moment it serves.
    await server.send('POST', `${table}/batch`, { inserts: { b: { tag: 'Red new' } }, sync_level: 'full_text' });
    await until(async () => (await server.send('GET', table)).body.migration === undefined);
    const after = await server.send('GET', table);
    expect(Object.keys(after.body.indexes as object)).toEqual(['full_text_index_v1']);
    expect(await find('evolve', { term: 'Red 7', field: 'tag' })).toEqual(['a7']);
    expect(await find('evolve', { term: 'Red new', field: 'tag' })).toEqual(['b']);
    expect(await find('evolve', { query: 'tag:red' })).toEqual([]);
  });

  test('a change of the default type has documents that name none found by the rules of the new one', async () => {
    const table = '/db/v1/tables/default-type';
    const typed = (type: string) => ({ schema: { type: 'object', properties: { f: { 'x-service-types': [type] } } } });
    const schema = (default_type: string) => ({
      default_type,
      document_schemas: { whole: typed('keyword'), words: typed('text') },
    });
    await server.send('POST', table, { num_shards: 2, schema: schema('whole') });
    const red = { f: 'Red Fox' };
    const inserts = { a: red, n: { ...red, _type: 'whole' }, z: { ...red, _type: 'words' } };
    await server.send('POST', `${table}/batch`, { inserts, sync_level: 'full_text' });
    expect(await find('default-type', { query: 'f:fox' })).toEqual(['z']);
    const changed = await server.send('PUT', `${table}/schema`, schema('words'));
    expect(changed.body).toMatchObject({ schema: { version: 1, default_type: 'words' } });
    await until(async () => (await server.send('GET', table)).body.migration === undefined);
    await server.send('POST', `${table}/batch`, { inserts: { b: red }, sync_level: 'full_text' });
    expect((await find('default-type', { query: 'f:fox' })).toSorted()).toEqual(['a', 'b', 'z']);
    expect(await find('default-type', { term: 'Red Fox', field: 'f' })).toEqual(['n']);
    const same = await server.send('PUT', `${table}/schema`, schema('words'));
    expect(same.body).toMatchObject({ schema: { version: 1 } });
  });

  test('a broken schema changes nothing', async () => {
    await server.send('POST', '/db/v1/tables/keep', { schema: schemaOf({ n: { type: 'integer' } }) });
    const answer = await server.send(
      'PUT',
      '/db/v1/tables/keep/schema',
      schemaOf({ n: { 'x-service-types': ['no-such-type'] } }),
    );
    expect(answer.body).toMatchObject({ code: 'invalid_schema' });
    expect((await server.send('GET', '/db/v1/tables/keep')).body).toMatchObject({ schema: { version: 0 } });
  });
});

test('a table is dropped in the midst of a rebuild and of other changes, and its name is free again', async () => {
  const table = '/db/v1/tables/fleeting';
  const inserts = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`k${n}`, { t: 'soup' }]));
  for (let round = 0; round < 5; round += 1) {
    expect((await server.send('POST', table, { num_shards: 2 })).status).toBe(200);
    await server.send('POST', `${table}/batch`, { inserts });
    await server.send('PUT', `${table}/schema`, schemaOf({ t: { type: 'string', 'x-service-types': ['keyword'] } }));
    const changes = ['a', 'b', 'c'].map((name) =>
      server.send('POST', `${table}/indexes/${name}`, { type: 'full_text' }),
    );
    const dropped = server.send('DELETE', table);
    const late = [
      server.send('PUT', `${table}/schema`, schemaOf({ t: { type: 'string' } })),
      server.send('POST', `${table}/query`, {}),
      server.send('GET', table),
    ];
    for (const answer of await Promise.all(changes)) expect(answer.status).toBe(201);
    expect((await dropped).status).toBe(204);
    for (const answer of await Promise.all(late)) expect([200, 404]).toContain(answer.status);
  }
});

test('a rebuild that a full disk keeps from its end serves as soon as there is room', async () => {
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t', {});
  await server.send('POST', '/db/v1/tables/t/batch', { inserts: { a: { title: 'soup' } }, sync_level: 'full_text' });
  const { changeTable } = CatalogStore.prototype;
  let calls = 0;
  const change = spyOn(CatalogStore.prototype, 'changeTable').mockImplementation(async function (
    this: CatalogStore,
    ...asked
  ) {
    calls += 1;
    // The first is the change itself.
    if (calls === 2) throw new ServiceError('insufficient_storage', 'the disk is full');
    return changeTable.apply(this, asked);
  });
  try {
    const properties = { title: { type: 'string', 'x-service-types': ['keyword'] } };
    const schema = { document_schemas: { doc: { schema: { properties } } } };
    expect((await server.send('PUT', '/db/v1/tables/t/schema', schema)).status).toBe(200);
    await until(async () => !('migration' in (await server.send('GET', '/db/v1/tables/t')).body));
    expect(calls).toBe(3);
  } finally {
    change.mockRestore();
  }
});
