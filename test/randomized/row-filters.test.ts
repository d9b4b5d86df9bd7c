import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Database } from '../../src/server/database/open-database.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { openProviders } from '../support/providers/model-service.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/**
 * For random documents, queries and row filters, a caller with the filter gets from a table the answers that everybody gets
 * from a table which holds only what the filter permits.
 */

interface Hit {
  _id: string;
  _sort?: unknown[];
}

interface Result {
  hits: { total: object; hits: Hit[]; max_score: number };
  aggregations?: object;
}

const words = ['amber', 'birch', 'cedar', 'dune', 'ember'];
const documentCount = 120;
const filterRounds = 6;
const queriesPerFilter = 30;

const directory = new TemporaryDirectory();
let database: Database;
const seed = runSeed();
const random = new SeededRandom(seed);

const keyOf = (at: number) => `k${String(at).padStart(3, '0')}`;
const pickWords = (count: number) => Array.from({ length: count }, () => random.pick(words)).join(' ');

function randomTarget(): object {
  return { target: keyOf(random.between(0, documentCount - 1)), weight: random.between(1, 4) / 4 };
}

/** The edges of each document, as they were written. */
const edgesOf = new Map<string, object>();

function randomDocument(at: number): object {
  const _edges = { near: { to: Array.from({ length: random.between(0, 3) }, randomTarget) } };
  edgesOf.set(keyOf(at), _edges);
  return {
    order: at,
    ...(random.chance(0.9) ? { text: pickWords(random.between(1, 6)) } : {}),
    ...(random.chance(0.8) ? { tag: random.pick(words) } : {}),
    ...(random.chance(0.7) ? { n: random.between(0, 9) } : {}),
    ...(random.chance(0.5) ? { flag: random.chance(0.5) } : {}),
    ...(random.chance(0.4) ? { day: `2024-0${random.between(1, 9)}-01` } : {}),
    _edges,
    _embeddings: {
      dense: [random.between(0, 9) + 0.5, random.between(0, 9), random.between(0, 9)],
      sparse: { [random.between(1, 3)]: random.between(1, 5) },
    },
  };
}

function randomNode(depth = 0): object {
  const leaves: (() => object)[] = [
    () => ({ match: pickWords(random.between(1, 2)), field: 'text' }),
    () => ({ query: `tag:${random.pick(words)} OR n:>${random.between(0, 9)}` }),
    () => ({ term: { tag: random.pick(words) } }),
    () => ({ range: { n: { gte: random.between(0, 9) } } }),
    () => ({ exists: { field: random.pick(['tag', 'n', 'flag', 'day']) } }),
    () => ({ prefix: { field: 'text', text: random.pick(words).slice(0, 2) } }),
    () => ({ match_phrase: { text: pickWords(2) } }),
    () => ({ range: { day: { gt: `2024-0${random.between(1, 9)}-01` } } }),
    () => ({ match: 'the' }),
    () => ({ match: random.pick(words), field: '_artifacts.note' }),
    () => ({ match_all: {} }),
  ];
  if (depth >= 2 || random.chance(0.6)) return random.pick(leaves)();
  const some = () => Array.from({ length: random.between(1, 2) }, () => randomNode(depth + 1));
  return {
    bool: { [random.pick(['must', 'should', 'filter'])]: some(), ...(random.chance(0.4) ? { must_not: some() } : {}) },
  };
}

function randomAggregations(): object {
  const background = random.chance(0.5) ? {} : { background_filter: { range: { n: { gte: 3 } } } };
  return {
    tags: { type: 'terms', field: 'tag', size: 50, min_doc_count: 0 },
    days: { type: 'date_histogram', field: 'day', calendar_interval: 'month' },
    odd: { type: 'significant_terms', field: 'tag', size: 50, ...background },
    numbers: { type: 'stats', field: 'n' },
    distinct: { type: 'cardinality', field: 'tag' },
    nested: {
      type: 'terms',
      field: 'flag',
      sub_aggregations: { tags: { type: 'terms', field: 'tag', min_doc_count: 0 } },
    },
  };
}

/** A search whose scores are the same for every hit, whatever words the whole table has. */
function evenSearch(): object {
  return random.pick([
    { match_all: {} },
    { range: { n: { gte: random.between(0, 5) } } },
    { range: { order: { lt: random.between(5, documentCount) } } },
  ]);
}

/** Words beside vectors of both kinds, fused in every way. */
function hybridRequest(): object {
  const merge_config = random.pick([
    {},
    { strategy: 'rrf' },
    { strategy: 'rsf' },
    { strategy: 'failover' },
    { weights: { dense: 2 } },
  ]);
  return {
    full_text_search: evenSearch(),
    embeddings: { dense: [random.between(0, 9), 2, 3], sparse: { 1: 1, 2: 0.3 } },
    merge_config,
    limit: random.between(1, 30),
    highlight: true,
    ...random.pick([{}, { pruner: { min_score_ratio: 0.5 } }, { pruner: { max_score_gap_percent: 10 } }]),
    ...(random.chance(0.3) ? { filter_query: randomNode() } : {}),
  };
}

/** The nearest by one vector, within bounds. */
function nearRequest(): object {
  const embeddings = { dense: [random.between(0, 9), 2, 3] };
  return { embeddings, distance_under: random.between(6, 90), distance_over: random.pick([0, 5]), limit: 50 };
}

/** A request whose answer does not depend on how often words occur in the whole table. */
function randomRequest(): object {
  const aggregations = random.chance(0.5) ? { aggregations: randomAggregations() } : {};
  const more = { ...(random.chance(0.3) ? { exclusion_query: randomNode() } : {}), ...aggregations };
  const order_by = [{ field: random.pick(['order', 'n', 'tag']), desc: random.chance(0.5) }, { field: 'order' }];
  switch (random.between(0, 9)) {
    case 0:
      return { ...more, count: true, filter_query: randomNode() };
    case 1:
      return {
        ...more,
        embeddings: { dense: [1, 2, 3], ...(random.chance(0.5) ? { sparse: { 1: 1, 3: 0.5 } } : {}) },
        ...(random.chance(0.5) ? { filter_query: randomNode() } : {}),
        limit: random.between(1, 20),
        fields: ['*', '_embeddings', '_artifacts'],
      };
    case 2:
      return {
        ...more,
        filter_query: randomNode(),
        order_by,
        limit: 1_000,
        highlight: true,
        fields: ['order', '_artifacts.note'],
      };
    case 3:
      return {
        ...more,
        full_text_search: randomNode(),
        order_by,
        limit: random.between(1, 30),
        offset: random.between(0, 9),
        highlight: random.pick([true, { fields: ['text', 'tag'] }]),
      };
    case 4: {
      // All matches are candidates, whatever their scores by words.
      const template = `{{order}} {{${random.pick(['text', 'tag'])}}}`;
      const reranker = { provider: 'mock', model: 'words', template, top_n: random.between(1, 50) };
      return { ...more, full_text_search: { query: `${pickWords(2)} OR order:>=0` }, reranker, limit: 500 };
    }
    case 5:
      return {
        ...more,
        semantic_search: pickWords(3),
        indexes: [random.pick(['meaning', 'parts'])],
        filter_query: randomNode(),
        limit: random.between(1, 20),
        ...(random.chance(0.5) ? { fields: ['*', '_chunks'] } : {}),
      };
    case 6: {
      const start_nodes = {
        keys: [keyOf(random.between(0, documentCount - 1)), keyOf(random.between(0, documentCount - 1))],
      };
      const leg = random.pick([true, { by: 'distance' }]);
      const params = { max_depth: random.between(1, 3) };
      return {
        ...more,
        graph_searches: { leg: { type: 'traverse', index_name: 'near', start_nodes, params, leg } },
        ...random.pick([{}, { expand_strategy: 'union' }, { expand_strategy: 'intersection' }]),
        ...(random.chance(0.5) ? { embeddings: { dense: [1, 2, 3] } } : {}),
        ...(random.chance(0.5) ? { filter_query: randomNode() } : {}),
        limit: random.between(1, 20),
      };
    }
    case 7:
      return { ...more, ...hybridRequest() };
    case 8:
      return { ...more, ...nearRequest() };
    default:
      return { ...more, filter_query: { ref: 'named' }, with: { named: randomNode() }, order_by, filter_prefix: 'k0' };
  }
}

async function ask(table: string, request: object, caller = testCaller()): Promise<Result> {
  const [answer = []] = await database.services.queries.run(table, bodyOf(request), caller);
  return JSON.parse(answer.join('')) as Result;
}

async function scan(table: string, request: object, caller = testCaller()): Promise<string[]> {
  const lines: string[] = [];
  for await (const page of await database.services.documents.scan(table, request, caller)) lines.push(...page);
  return lines;
}

/** The members of an answer that both tables must share: seals of cursors name their table, and a damped score its statistics. */
function comparable({ hits, aggregations }: Result): object {
  const shown = hits.hits.map(({ _sort, ...hit }) => ({ ...hit, _sort: _sort?.slice(0, -1) }));
  return { total: hits.total, hits: shown, aggregations };
}

beforeAll(async () => {
  database = await openTestDatabase(directory.path, { providers: openProviders() });
  await create('everything');
  const documents = Array.from({ length: documentCount }, (_, at) => [keyOf(at), randomDocument(at)]);
  await insert('everything', Object.fromEntries(documents));
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

async function create(table: string): Promise<void> {
  const embedder = { provider: 'mock', model: 'words', dimensions: 16 };
  const indexes = {
    dense: { type: 'embeddings', external: true, dimension: 3 },
    sparse: { type: 'embeddings', external: true, sparse: true },
    near: { type: 'graph' },
    // A query that counters answer in one table is visited under a row filter in the other.
    counters: { type: 'algebraic', derive_from_schema: true },
    // Its vectors are of the table's own making.
    meaning: { type: 'embeddings', field: 'text', embedder },
    // A vector for each word.
    parts: {
      type: 'embeddings',
      field: 'text',
      embedder,
      chunker: { provider: 'service', text: { target_tokens: 1 } },
    },
  };
  const properties = { n: { type: 'number' }, flag: { type: 'boolean' } };
  const declared = { type: 'object', 'x-service-dynamic-indexing': { mode: 'infer_types' }, properties };
  const schema = { document_schemas: { doc: { schema: declared } } };
  await database.services.tables.create(table, { num_shards: random.between(1, 3), indexes, schema }, testCaller());
  const note = { kind: 'asset', template: 'note {{tag}} {{text}}', full_text_index: true };
  const pieces = { kind: 'chunk', source_artifact_name: 'note', chunk_size: 12, full_text_index: true };
  const vectors = {
    kind: 'embedding',
    source_artifact_name: 'pieces',
    producer_json: { type: 'embedder', config: embedder },
  };
  for (const [name, enrichment] of Object.entries({ note, pieces, vectors })) {
    await database.services.artifacts.put(table, name, enrichment, testCaller());
  }
}

async function insert(table: string, inserts: object): Promise<void> {
  await database.services.writes.batch(table, bodyOf({ inserts, sync_level: 'enrichments' }), testCaller());
}

/** A table of what the filter lets through in the table of everything. */
async function tableOf(name: string, filter_query: object): Promise<void> {
  await create(name);
  const lines = await scan('everything', { filter_query, fields: ['*', '_embeddings.dense', '_embeddings.sparse'] });
  const documents = lines.map((line) => {
    const { _id, key: _, ...document } = JSON.parse(line) as { _id: string; key: string };
    // A scan shows no edges.
    return [_id, { ...document, _edges: edgesOf.get(_id) }] as const;
  });
  if (documents.length > 0) await insert(name, Object.fromEntries(documents));
}

test('answers under a row filter are those of a table that holds only what it permits', async () => {
  for (let round = 0; round < filterRounds; round += 1) {
    const filter = round === 0 ? { match_none: {} } : randomNode();
    const only = `only${round}`;
    await tableOf(only, filter);
    const caller = testCaller({ rowFilter: { everything: filter } });
    for (let count = 0; count < queriesPerFilter; count += 1) {
      const request = randomRequest();
      const at = { seed, filter: JSON.stringify(filter), request: JSON.stringify(request) };
      const under = comparable(await ask('everything', request, caller));
      expect({ ...at, ...under }).toEqual({ ...at, ...comparable(await ask(only, request)) });
    }
    const filter_query = randomNode();
    const fields = ['*', '_embeddings.dense', '_chunks', '_artifacts'];
    for (const request of [{}, { filter_query }, { fields, filter_query }, { from: 'k03', to: 'k08', fields }]) {
      const under = await scan('everything', request, caller);
      expect({ seed, filter, request, lines: under }).toEqual({
        seed,
        filter,
        request,
        lines: await scan(only, request),
      });
    }
    await compareLookups(only, caller);
    await compareTraces(only, caller);
    await compareGraphs(only, caller);
    await comparePages(only, caller);
  }
}, 120_000);

async function compareLookups(only: string, caller: ReturnType<typeof testCaller>): Promise<void> {
  const { documents } = database.services;
  const found = async (table: string, key: string, by: typeof caller) => {
    const fields = ['*', '_embeddings', '_chunks', '_artifacts'];
    const lookup = async () => documents.lookup(table, key, fields, by);
    const answer = await lookup().catch((error: { code: string }) => error.code);
    return typeof answer === 'string' ? answer : JSON.parse(answer.json as string);
  };
  for (let at = 0; at < documentCount; at += 7) {
    const key = keyOf(at);
    expect({ seed, key, found: await found('everything', key, caller) }).toEqual({
      seed,
      key,
      found: await found(only, key, testCaller()),
    });
  }
}

/** The answers about the artifacts of each document, and for a document that does not exist. */
async function compareTraces(only: string, caller: ReturnType<typeof testCaller>): Promise<void> {
  const { artifactTrace } = database.services;
  const traced = (table: string, key: string, by: typeof caller) =>
    artifactTrace.of(table, key, by).catch((error: { code: string }) => error.code);
  const states = Array.from({ length: documentCount }, (_, at) => traced('everything', keyOf(at), testCaller()));
  expect(JSON.stringify(await Promise.all(states))).toMatch(/"note","kind":"asset","state":"ready"/);
  for (let at = 0; at < documentCount; at += 5) {
    const key = keyOf(at);
    expect({ seed, key, trace: await traced('everything', key, caller) }).toEqual({
      seed,
      key,
      trace: await traced(only, key, testCaller()),
    });
  }
}

/** Times of an answer, and of its edges: the two tables were written one after the other. */
const times = new Set(['search_time_ms', 'took', 'created_at', 'updated_at']);
const timeless = (answer: string) =>
  JSON.parse(answer, (name, value) => (times.has(name) ? undefined : value)) as object;

/** Edges, traversals with documents, paths and patterns. */
async function compareGraphs(only: string, caller: ReturnType<typeof testCaller>): Promise<void> {
  const { graphs } = database.services;
  // A key without a document is a node for whoever may see every document; a filter lets none through.
  const whole = testCaller({ rowFilter: { [only]: { match_all: {} } } });
  const key = () => keyOf(random.between(0, documentCount - 1));
  const direction = () => random.pick(['out', 'in', 'both']);
  for (let count = 0; count < 8; count += 1) {
    const edges = { key: key(), direction: direction() };
    const walk = { start: key(), direction: direction(), max_depth: random.between(1, 3), include_paths: true };
    const traverse = { ...walk, include_edges: true, include_documents: true, max_results: random.between(1, 200) };
    const ends = { source: key(), target: key(), direction: direction(), k: random.between(1, 3) };
    const path = { ...ends, weight_mode: random.pick(['min_hops', 'min_weight', 'max_weight']) };
    const node_filter = random.chance(0.5) ? { node_filter: { filter_query: randomNode() } } : {};
    const pattern = [{ alias: 'a' }, { alias: 'b', edge: { direction: direction(), max_hops: 2 }, ...node_filter }];
    const matched = {
      type: 'pattern',
      index_name: 'near',
      start_nodes: { keys: [key(), key()] },
      pattern,
      include_documents: true,
    };
    const beside = besideHits(key);
    const answers = async (table: string, by: typeof caller) => {
      const request = { filter_query: { match_none: {} }, graph_searches: { matched } };
      for (;;) {
        const answer = JSON.stringify({
          edges: JSON.parse(await graphs.edges(table, 'near', edges, by)),
          nodes: JSON.parse(await graphs.traverse(table, 'near', traverse, by)),
          paths: await graphs.paths(table, 'near', path, by),
          matches: ((await ask(table, request, by)) as Result & { graph_results: object }).graph_results,
          beside: { ...(await ask(table, beside, by)), table: '' },
        });
        // Under load an index may show a write later than an answer waits.
        if (!answer.includes('"partial":"indexing"')) return timeless(answer);
      }
    };
    const at = { seed, edges, traverse, path, pattern, start_nodes: matched.start_nodes, beside };
    expect({ ...at, ...(await answers('everything', caller)) }).toEqual({ ...at, ...(await answers(only, whole)) });
  }
}

/** A query whose graph searches begin, or end, at its hits. */
function besideHits(key: () => string): object {
  const hits = { result_ref: '$full_text_results' };
  const walked = { index_name: 'near', include_documents: true, include_edges: true };
  const around = { ...walked, type: random.pick(['neighbors', 'traverse']), start_nodes: hits };
  const type = random.pick(['shortest_path', 'k_shortest_paths']);
  const weight_mode = random.pick(['min_hops', 'min_weight', 'max_weight']);
  const params = { ...(type === 'k_shortest_paths' && { k: 3 }), max_depth: 6, weight_mode };
  const way = {
    type,
    index_name: 'near',
    start_nodes: { keys: [key()] },
    target_nodes: random.pick([hits, { keys: [key(), key()] }]),
    params,
    include_documents: true,
  };
  return {
    full_text_search: evenSearch(),
    graph_searches: { around, way },
    ...random.pick([{}, { expand_strategy: 'union' }, { expand_strategy: 'intersection' }]),
    limit: random.between(1, 10),
  };
}

/** All pages by cursor, one after another. */
async function comparePages(only: string, caller: ReturnType<typeof testCaller>): Promise<void> {
  const pages = async (table: string, by: typeof caller) => {
    const keys: string[] = [];
    const request = { order_by: [{ field: 'tag' }, { field: 'order' }], limit: 7, fields: [] };
    for (let after: object = {}; ; ) {
      const { hits } = await ask(table, { ...request, ...after }, by);
      const last = hits.hits.at(-1);
      if (!last) return keys;
      keys.push(...hits.hits.map(({ _id }) => _id));
      after = { search_after: last._sort };
    }
  };
  expect({ seed, keys: await pages('everything', caller) }).toEqual({ seed, keys: await pages(only, testCaller()) });
}
