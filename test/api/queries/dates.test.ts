import { afterAll, beforeAll, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface Answer {
  responses: [
    {
      hits: { total: { value: number; relation: string }; hits: { _id: string; _sort: unknown[] }[] };
      aggregations: Record<string, { value?: number; value_as_string?: string; buckets: Record<string, unknown>[] }>;
    },
  ];
}

/** In their order; a string of no calendar day comes behind all dates. */
const ends: Readonly<Record<string, string>> = {
  caesar: '0001-01-01',
  hastings: '1066-10-14T09:00:00Z',
  westphalia: '1648-10-24T12:00:00.000001Z',
  moon: '1969-07-20T20:17:40.123456789Z',
  soon: '2199-12-31',
  far: '2262-04-12T00:00:00+02:00',
  never: '9999-12-31T23:59:59.999Z',
  unknown: '0000-00-00',
};
const keys = Object.keys(ends);
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
  const properties = { declared: { type: 'string', format: 'date-time' } };
  const open = { type: 'object', properties, 'x-service-dynamic-indexing': { mode: 'infer_types' } };
  const schema = { default_type: 'd', document_schemas: { d: { schema: open } } };
  await server.send('POST', '/db/v1/tables/ends', { num_shards: 2, schema });
  const inserts = Object.fromEntries(keys.map((key) => [key, { end: ends[key], declared: ends[key] }]));
  await server.send('POST', '/db/v1/tables/ends/batch', { inserts, sync_level: 'full_index' });
});
afterAll(() => server[Symbol.asyncDispose]());

async function ask(request: object): Promise<Answer['responses'][0]> {
  const { body } = await server.send<Answer>('POST', '/db/v1/tables/ends/query', {
    limit: 100,
    fields: [],
    ...request,
  });
  return body.responses[0];
}

async function found(filter_query: object): Promise<string[]> {
  const { hits } = await ask({ filter_query, order_by: [{ field: 'end' }] });
  expect(hits.total).toEqual({ value: hits.hits.length, relation: 'exact' });
  return hits.hits.map(({ _id }) => _id);
}

test.each(['end', 'declared'])('dates of all years from 1 to 9999 are found by their ranges (%s)', async (field) => {
  const range = (bounds: object) => found({ range: { [field]: bounds } });
  expect(await range({ gte: '2250-01-01' })).toEqual(['far', 'never']);
  expect(await range({ gt: '2262-04-11T22:00:00Z' })).toEqual(['never']);
  expect(await range({ gte: '0001-01-01', lte: '9999-12-31' })).toEqual(keys.slice(0, 6));
  expect(await range({ lte: '9999-12-31T23:59:59.999Z' })).toEqual(keys.slice(0, 7));
  expect(await range({ lt: '1648-10-24T12:00:00.000001Z' })).toEqual(['caesar', 'hastings']);
  expect(await found({ term: { [field]: '2262-04-11T22:00:00Z' } })).toEqual(['far']);
  expect(await found({ query: `${field}:>9000-01-01` })).toEqual(['never']);
});

test('dates of all years are in order, shown as they are, and paged through', async () => {
  const { hits } = await ask({ order_by: [{ field: 'end' }] });
  expect(hits.hits.map(({ _id }) => _id)).toEqual(keys);
  expect(hits.hits.map(({ _sort }) => _sort[0])).toEqual([
    '0001-01-01T00:00:00Z',
    '1066-10-14T09:00:00Z',
    '1648-10-24T12:00:00.000001Z',
    '1969-07-20T20:17:40.123456789Z',
    '2199-12-31T00:00:00Z',
    '2262-04-11T22:00:00Z',
    '9999-12-31T23:59:59.999Z',
    '0000-00-00',
  ]);
  const after = hits.hits[5]?._sort;
  const next = await ask({ order_by: [{ field: 'end' }], search_after: after });
  expect(next.hits.hits.map(({ _id }) => _id)).toEqual(['never', 'unknown']);
});

test('aggregations count dates of all years where they lie, and show the bounds that were asked for', async () => {
  const date_ranges = [
    { name: 'old', to: '1600-01-01' },
    { name: 'open', from: '9999-01-01' },
  ];
  const { aggregations } = await ask({
    aggregations: {
      least: { type: 'min', field: 'end' },
      greatest: { type: 'max', field: 'end' },
      ranges: { type: 'date_range', field: 'end', date_ranges },
      years: { type: 'date_histogram', field: 'end', calendar_interval: 'year', min_doc_count: 1 },
      different: { type: 'cardinality', field: 'declared' },
    },
  });
  expect(aggregations.least).toMatchObject({ value: -62_135_596_800_000, value_as_string: '0001-01-01T00:00:00Z' });
  expect(aggregations.greatest).toMatchObject({ value_as_string: '9999-12-31T23:59:59.999Z' });
  expect(aggregations.different).toMatchObject({ value: 7 });
  expect(aggregations.ranges?.buckets).toEqual([
    { key: 'old', doc_count: 2, to: -11_676_096_000_000, to_as_string: '1600-01-01T00:00:00Z' },
    { key: 'open', doc_count: 1, from: 253_370_764_800_000, from_as_string: '9999-01-01T00:00:00Z' },
  ]);
  const years = aggregations.years?.buckets.map(({ key_as_string }) => String(key_as_string).slice(0, 4));
  expect(years).toEqual(['0001', '1066', '1648', '1969', '2199', '2262', '9999']);
});

test('where dates are kept as strings, bounds that are dates compare strings', async () => {
  const strings = (types?: string[]) => ({ type: 'string', ...(types && { 'x-service-types': types }) });
  const properties = { plain: strings(), whole: strings(['keyword']), either: strings(['keyword']) };
  const schema = {
    document_schemas: {
      strict: { schema: { type: 'object', properties } },
      loose: { schema: { type: 'object', 'x-service-dynamic-indexing': { mode: 'infer_types' } } },
    },
    dynamic_templates: [{ name: 'codes', match: 'code_*', mapping: { type: 'keyword' } }],
  };
  await server.send('POST', '/db/v1/tables/texts', { num_shards: 2, schema });
  const document = (_type: string, text: string) => ({
    _type,
    ...Object.fromEntries(['plain', 'whole', 'either', 'code_1'].map((field) => [field, text])),
  });
  const inserts = {
    a: document('strict', '2024-01-15'),
    m: document('strict', '2024-02-01T00:00:00Z'),
    p: document('strict', '2024-02'),
    s: document('loose', '2024-01-15'),
    z: document('loose', '2024-02'),
  };
  await server.send('POST', '/db/v1/tables/texts/batch', { inserts, sync_level: 'full_index' });
  const answer = async (request: object) => {
    const body = { order_by: [{ field: '_id' }], fields: [], ...request };
    const { responses } = (await server.send<Answer>('POST', '/db/v1/tables/texts/query', body)).body;
    return responses[0].hits.hits as (Answer['responses'][0]['hits']['hits'][0] & { _highlight?: object })[];
  };
  const asked = async (request: object) => (await answer(request)).map(({ _id }) => _id);
  const bounds = { gte: '2024-01-10', lte: '2024-02-10' };
  for (const field of ['plain', 'whole', 'either']) {
    expect(await asked({ filter_query: { range: { [field]: bounds } } })).toEqual(['a', 'm', 'p', 's']);
    expect(await asked({ filter_query: { query: `${field}:[2024-01-10 TO 2024-02-10]` } })).toEqual([
      'a',
      'm',
      'p',
      's',
    ]);
    expect(await asked({ exclusion_query: { range: { [field]: { gte: '2024-01-20' } } } })).toEqual(['a', 's', 'z']);
  }
  expect(await asked({ filter_query: { range: { code_1: bounds } } })).toEqual(['a', 'm', 'p', 's', 'z']);
  const marked = await answer({ full_text_search: { range: { whole: bounds } }, highlight: true });
  expect(marked[0]?._highlight).toEqual({ whole: ['<em>2024-01-15</em>'] });
});
