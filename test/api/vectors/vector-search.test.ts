import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { FakeClock } from '../../support/fake-clock.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';
import { distanceOf, type Metric, ranked, scoreOf, sparseProduct } from '../../support/vectors/vector-oracle.ts';
import {
  ask,
  createRecipes,
  denseMetrics,
  type Recipe,
  randomNumbers,
  randomTokens,
  randomVector,
  recipes,
  write,
} from '../../support/vectors/vector-recipes.ts';

let server: TestServer;
const documents = recipes(400);
const random = randomNumbers(5);
type DenseName = keyof typeof denseMetrics;
const denseIndexes = Object.entries(denseMetrics) as [DenseName, Metric][];

beforeAll(async () => {
  server = await startTestServer();
  for (const [table, shards] of [
    ['one', 1],
    ['four', 4],
  ] as const) {
    await createRecipes(server, table, shards);
    await write(server, table, {
      inserts: { ...documents, plain: { title: 'leek soup without a vector', year: 2001 } },
    });
  }
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/** The restriction of a search, and the recipes that it leaves. */
const restrictions: [name: string, request: object, keeps: (key: string, recipe: Recipe) => boolean][] = [
  ['nothing', {}, () => true],
  ['half', { filter_query: { term: { vegan: true } } }, (_, { vegan }) => vegan],
  ['a fiftieth', { filter_query: { query: 'year:2007' } }, (_, { year }) => year === 2007],
  ['a prefix', { filter_prefix: 'k' }, (key) => key.startsWith('k')],
  [
    'all together',
    { filter_query: { term: { vegan: true } }, exclusion_query: { query: 'year:>2030' }, filter_prefix: '0' },
    (key, { vegan, year }) => vegan && year <= 2030 && key.startsWith('0'),
  ],
  ['words of the text', { query: { bool: { filter: [{ match: 'leek' }] } } }, (_, { title }) => title.includes('leek')],
  ['all', { filter_query: { query: 'year:1' } }, () => false],
];

function neighbours(
  name: DenseName,
  metric: Metric,
  wanted: number[],
  keeps: (key: string, recipe: Recipe) => boolean,
) {
  const kept = Object.entries(documents).filter(([key, recipe]) => keeps(key, recipe));
  return ranked(
    kept.map(([key, { _embeddings }]) => ({
      key,
      score: scoreOf(metric, distanceOf(metric, wanted, _embeddings[name])),
    })),
  );
}

describe('nearest neighbours are those of a comparison with every vector', () => {
  for (const [name, metric] of denseIndexes) {
    for (const [what, restriction, keeps] of restrictions) {
      test(`by ${metric}, without ${what === 'nothing' ? 'a filter' : `all but ${what}`}`, async () => {
        const wanted = randomVector(random);
        const expected = neighbours(name, metric, wanted, keeps);
        const request = { embeddings: { [name]: wanted }, limit: 15, search_effort: 1, ...restriction };
        const packed = Buffer.from(Float32Array.from(wanted).buffer).toString('base64');
        for (const table of ['one', 'four']) {
          const { hits } = await ask(server, table, request);
          expect(hits.hits.map((hit) => hit._id)).toEqual(expected.slice(0, 15).map(({ key }) => key));
          for (const [at, hit] of hits.hits.entries()) {
            const recipe = documents[hit._id];
            const distance = distanceOf(metric, wanted, recipe?._embeddings[name] ?? []);
            expect(hit._distance).toBeCloseTo(distance, 4);
            expect(hit._score).toBeCloseTo(expected[at]?.score ?? Number.NaN, 4);
            expect(Object.keys(hit._index_scores ?? {})).toEqual([name]);
            expect(hit._source.title).toBe(recipe?.title);
            expect(hit._source).not.toHaveProperty('_embeddings');
          }
          expect(hits.total.value).toBe(Math.min(15, expected.length));
          expect(hits.total.relation).toBe(expected.length < 15 ? 'exact' : 'gte');
          expect(await ask(server, table, { ...request, embeddings: { [name]: packed } })).toMatchObject({ hits });
        }
      });
    }
  }

  for (const [name, metric] of denseIndexes) {
    test(`by ${metric}, only those within the bounds of the distance, and all of them`, async () => {
      const wanted = randomVector(random);
      const distances = neighbours(name, metric, wanted, () => true).map(({ key }) => ({
        key,
        distance: distanceOf(metric, wanted, documents[key]?._embeddings[name] ?? []),
      }));
      const [over, under] = [distances[20]?.distance ?? 0, distances[60]?.distance ?? 0];
      const nearest = distances[0]?.distance ?? 0;
      const middle = { distance_over: over - 1e-5, distance_under: under + 1e-5 };
      for (const [bounds, expected] of [
        [{ distance_under: middle.distance_under }, distances.slice(0, 61)],
        [{ distance_over: middle.distance_over }, distances.slice(20)],
        [middle, distances.slice(20, 61)],
        [{ distance_under: nearest - 1 }, []],
      ] as const) {
        for (const table of ['one', 'four']) {
          const request = { embeddings: { [name]: wanted }, limit: 1000, search_effort: 1, ...bounds };
          const { hits } = await ask(server, table, request);
          expect(hits.hits.map((hit) => hit._id)).toEqual(expected.map(({ key }) => key));
          expect(hits.total).toEqual({ value: expected.length, relation: 'exact' });
        }
      }
    });
  }
});

describe('a sparse search answers the best products', () => {
  for (const [what, restriction, keeps] of restrictions) {
    test(`without ${what === 'nothing' ? 'a filter' : `all but ${what}`}`, async () => {
      const wanted = randomTokens(random);
      const kept = Object.entries(documents).filter(([key, recipe]) => keeps(key, recipe));
      const products = kept.map(([key, { _embeddings }]) => ({ key, score: sparseProduct(wanted, _embeddings.tags) }));
      const expected = ranked(products.filter(({ score }) => score > 0)).slice(0, 12);
      const indices = Object.keys(wanted).map(Number);
      for (const table of ['one', 'four']) {
        const { hits } = await ask(server, table, { embeddings: { tags: wanted }, ...restriction });
        expect(hits.hits.map((hit) => hit._id)).toEqual(expected.map(({ key }) => key));
        for (const [at, hit] of hits.hits.entries()) {
          expect(hit._score).toBeCloseTo(expected[at]?.score ?? Number.NaN, 4);
          expect(hit._distance).toBeUndefined();
        }
        const listed = { indices, values: Object.values(wanted) };
        expect(await ask(server, table, { embeddings: { tags: listed }, ...restriction })).toMatchObject({ hits });
      }
    });
  }

  test('and nothing for nothing', async () => {
    expect((await ask(server, 'four', { embeddings: { tags: {} } })).hits.hits).toEqual([]);
    expect((await ask(server, 'four', { embeddings: { tags: { '4000000000': 1 } } })).hits.hits).toEqual([]);
  });
});

describe('a search by vectors shows what was written', () => {
  const far = [9, 9, 9, 9, 9, 9];
  const nearest = async (table: string, more: object = {}) => {
    const { hits } = await ask(server, table, { embeddings: { euclid: far }, limit: 2, search_effort: 1, ...more });
    return hits.hits.map((hit) => hit._id);
  };

  test('new vectors, moved ones, kept ones and deleted ones', async () => {
    await createRecipes(server, 'changing', 4);
    const place = (value: number) => ({ _embeddings: { euclid: far.map(() => value) } });
    await write(server, 'changing', { inserts: { a: place(1), m: { n: 1, ...place(2) }, z: place(3) } });
    expect(await nearest('changing')).toEqual(['z', 'm']);
    await write(server, 'changing', { inserts: { a: place(8) } });
    expect(await nearest('changing')).toEqual(['a', 'z']);
    await write(server, 'changing', { inserts: { a: { n: 5 } } });
    expect(await nearest('changing')).toEqual(['a', 'z']);
    expect(await nearest('changing', { filter_query: { query: 'n:5' } })).toEqual(['a']);
    await write(server, 'changing', { inserts: { a: { n: 5, _embeddings: { euclid: null } } } });
    expect(await nearest('changing')).toEqual(['z', 'm']);
    await write(server, 'changing', { deletes: ['z'] });
    expect(await nearest('changing')).toEqual(['m']);
    await write(server, 'changing', { inserts: { z: { n: 6 } } });
    expect(await nearest('changing')).toEqual(['m']);
    const fields = { fields: ['n', '_embeddings'] };
    const { hits } = await ask(server, 'changing', { embeddings: { euclid: far }, ...fields });
    expect(hits.hits.map((hit) => hit._source)).toEqual([{ n: 1, _embeddings: { euclid: far.map(() => 2) } }]);
  });

  test('and never a document that its filter does not keep, while writes go on', async () => {
    await createRecipes(server, 'moving', 4);
    const keys = Array.from({ length: 40 }, (_, at) => `${'09akluvz'[at % 8]}m${at}`);
    const state = new Map<string, { vegan: boolean; euclid: number[] } | undefined>();
    const wanted = { embeddings: { euclid: randomVector(random) }, search_effort: 1, limit: 30 };
    const asked = [
      { ...wanted, filter_query: { term: { vegan: true } } },
      { ...wanted, full_text_search: { query: 'vegan:true soup' }, filter_query: { term: { vegan: true } } },
    ];
    const pick = () => keys[Math.floor(random() * keys.length)] ?? '';
    for (let round = 0; round < 20; round += 1) {
      const inserts: Record<string, object> = {};
      for (const key of [pick(), pick(), pick()]) {
        const recipe = { vegan: random() < 0.5, euclid: randomVector(random) };
        state.set(key, recipe);
        inserts[key] = { title: 'soup', vegan: recipe.vegan, _embeddings: { euclid: recipe.euclid } };
      }
      const deletes = [pick()].filter((key) => !(key in inserts));
      for (const key of deletes) state.set(key, undefined);
      const batch = { inserts, deletes, sync_level: 'write' };
      expect(await server.send('POST', '/db/v1/tables/moving/batch', batch)).toMatchObject({ status: 201 });
      for (const request of asked) {
        const { hits } = await ask(server, 'moving', request);
        for (const hit of hits.hits) expect([hit._id, hit._source.vegan]).toEqual([hit._id, true]);
        for (const hit of hits.hits) expect(state.get(hit._id)).toMatchObject({ vegan: true });
        expect(new Set(hits.hits.map((hit) => hit._id)).size).toBe(hits.hits.length);
      }
    }
    // One in each range, all of which are then up to date.
    await write(server, 'moving', { inserts: { '0': {}, '9': {}, a: {}, k: {}, l: {}, u: {}, v: {}, z: {} } });
    const euclid = wanted.embeddings.euclid;
    const kept = [...state].flatMap(([key, recipe]) =>
      recipe?.vegan ? [{ key, score: -distanceOf('l2_squared', euclid, recipe.euclid) }] : [],
    );
    const { hits } = await ask(server, 'moving', asked[0] ?? {});
    expect(hits.hits.map((hit) => hit._id)).toEqual(
      ranked(kept)
        .map(({ key }) => key)
        .slice(0, 30),
    );
  });

  test('and nothing that has expired', async () => {
    const clock = new FakeClock();
    await using other = await startTestServer({ clock });
    await createRecipes(other, 'passing', 2, { schema: { ttl: { duration: '1h' } } });
    const vector = { _embeddings: { euclid: far } };
    await write(other, 'passing', { inserts: { b: vector, k: vector } });
    clock.jump(30 * 60_000);
    await write(other, 'passing', { inserts: { later: vector } });
    const keysNow = async (more: object) =>
      (await ask(other, 'passing', { embeddings: { euclid: far }, ...more })).hits.hits.map((hit) => hit._id);
    expect(await keysNow({})).toEqual(['b', 'k', 'later']);
    // Before any sweep.
    clock.jump(30 * 60_000 + 1);
    expect(await keysNow({})).toEqual(['later']);
    expect(await keysNow({ limit: 1 })).toEqual(['later']);
  });
});
