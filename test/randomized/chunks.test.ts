import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import type { Database } from '../../src/server/database/open-database.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { openProviders } from '../support/providers/model-service.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/**
 * An index with a chunker answers, after any writes, as a brute-force search does: each document once, scored by the nearest
 * of its chunks, or by the chunk with the greatest dot product where vectors are sparse, under any filter and row filter, in
 * one range and in three, and in the next process.
 */

setDefaultTimeout(120_000);

interface Hit {
  _id: string;
  _score: number;
  _distance: number;
  _source: { _chunks?: Record<string, { _content: string }[]> };
}

const words = ['amber', 'birch', 'cedar', 'dune', 'ember', 'fern', 'gorse', 'hazel'];
const rounds = 12;
const dimensions = 16;

const directory = new TemporaryDirectory();
let database: Database;
const seed = runSeed();
const random = new SeededRandom(seed);
const owner = testCaller();

/** The content of the tables: the sentences of each document, which are its chunks. */
const held = new Map<string, { sentences: string[]; tag: string }>();
const vectors = new Map<string, Float32Array>();

const sentence = () => `${Array.from({ length: 3 }, () => random.pick(words)).join(' ')}.`;
const textOf = (sentences: readonly string[]) => sentences.join(' ');

beforeAll(async () => {
  database = await openTestDatabase(directory.path, { providers: openProviders() });
  const chunker = { provider: 'service', text: { target_tokens: 4, separator: '. ' } };
  const embedder = { provider: 'mock', model: 'words', dimensions };
  const whole = { type: 'embeddings', field: 'text', embedder, distance_metric: 'l2_squared' };
  await database.services.tables.create('sentences', { indexes: { whole } }, owner);
  for (const ranges of [1, 3]) {
    const sparse = { type: 'embeddings', sparse: true, field: 'text', embedder: { provider: 'mock', model: 'sparse' } };
    const more = { num_shards: ranges, indexes: { parts: { ...whole, chunker }, terms: { ...sparse, chunker } } };
    await database.services.tables.create(`in${ranges}`, more, owner);
  }
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

async function reopen(): Promise<void> {
  await database.close();
  database = await openTestDatabase(directory.path, { providers: openProviders() });
}

async function write(table: string, body: object): Promise<void> {
  const { status } = await database.services.writes.batch(table, bodyOf({ ...body, sync_level: 'full_index' }), owner);
  expect(status).toBe('committed');
}

async function search(table: string, request: object, caller = owner): Promise<Hit[]> {
  const [answer = []] = await database.services.queries.run(table, bodyOf(request), caller);
  return (JSON.parse(answer.join('')) as { hits: { hits: Hit[] } }).hits.hits;
}

/** The vector of a sentence, which a table of sentences tells. */
async function learn(sentences: readonly string[]): Promise<void> {
  const unknown = [...new Set(sentences)].filter((each) => !vectors.has(each));
  if (unknown.length === 0) return;
  const inserts = Object.fromEntries(unknown.map((each) => [each, { text: each }]));
  await write('sentences', { inserts });
  for (const each of unknown) {
    const found = await database.services.documents.lookup('sentences', each, ['_embeddings'], owner);
    const { _embeddings } = JSON.parse(String(found.json)) as { _embeddings: { whole: number[] } };
    vectors.set(each, Float32Array.from(_embeddings.whole));
  }
}

function distance(left: string, right: string): number {
  const [a, b] = [vectors.get(left), vectors.get(right)];
  if (!a || !b) throw new Error('a sentence without its vector');
  return a.reduce((sum, value, at) => sum + (value - (b[at] ?? 0)) ** 2, 0);
}

/** Distance of the nearest chunk of each document that `lets` through, nearest first. */
function nearest(asked: string, lets: (tag: string) => boolean): { key: string; distance: number }[] {
  const found = [...held].flatMap(([key, { sentences, tag }]) => {
    if (sentences.length === 0 || !lets(tag)) return [];
    return [{ key, distance: Math.min(...sentences.map((each) => distance(asked, each))) }];
  });
  return found.sort((a, b) => a.distance - b.distance || (a.key < b.key ? -1 : 1));
}

/** Waits until the ranges that nobody has written to since the last start have been opened, too. */
async function settle(table: string): Promise<void> {
  for (const index of ['parts', 'terms']) {
    await until(async () => {
      const { ranges } = await database.services.indexes.get(table, index, owner);
      return ranges.every(({ hasReplayed, stats }) => hasReplayed && stats !== undefined);
    });
  }
}

/** Some documents written, some of them again with fewer or more chunks, some with none, some deleted. */
async function change(): Promise<void> {
  const inserts: Record<string, object> = {};
  const deletes: string[] = [];
  for (let count = random.between(1, 25); count > 0; count -= 1) {
    const key = `${random.pick(['!', 'k', '~'])}${random.between(0, 20)}`;
    if (inserts[key] || deletes.includes(key)) continue;
    if (held.has(key) && random.chance(0.2)) {
      deletes.push(key);
      held.delete(key);
      continue;
    }
    const sentences = random.chance(0.15) ? [] : Array.from({ length: random.between(1, 6) }, sentence);
    const tag = random.pick(['red', 'green', 'blue']);
    // A text of white space is as good as none.
    inserts[key] = { text: sentences.length === 0 ? random.pick(['', '  ']) : textOf(sentences), tag };
    held.set(key, { sentences, tag });
  }
  await learn([...held.values()].flatMap(({ sentences }) => sentences));
  for (const table of ['in1', 'in3']) await write(table, { inserts, deletes });
}

/** A query of one index, whom it is asked for, and the tags that it lets through. */
function question(table: string, index: string, asked: string) {
  const tag = random.pick(['red', 'green', 'blue']);
  const [isFiltered, isHidden] = [random.chance(0.5), random.chance(0.3)];
  const limit = random.pick([1, 3, 10, 100]);
  const request = {
    semantic_search: asked,
    indexes: [index],
    limit,
    fields: ['_chunks'],
    ...(isFiltered ? { filter_query: { term: { tag } } } : {}),
  };
  const caller = isHidden
    ? testCaller({ rowFilter: { [table]: [{ bool: { must_not: [{ term: { tag: 'red' } }] } }] } })
    : owner;
  const lets = (each: string) => (!isFiltered || each === tag) && (!isHidden || each !== 'red');
  return { request, caller, lets, limit, context: { seed, table, request, isHidden } };
}

async function compare(table: string): Promise<void> {
  const asked = sentence();
  await learn([asked]);
  const { request, caller, lets, limit, context } = question(table, 'parts', asked);
  const hits = await search(table, request, caller);
  const truth = nearest(asked, lets).slice(0, limit);
  // Documents at one distance come in any order here: its last digits depend on how it is summed up.
  const near = new Map(nearest(asked, () => true).map((found) => [found.key, found.distance.toFixed(4)]));
  const distances = hits.map(({ _id }) => near.get(_id));
  expect({ ...context, distances }).toEqual({ ...context, distances: truth.map((found) => found.distance.toFixed(4)) });
  expect(new Set(hits.map(({ _id }) => _id)).size).toBe(hits.length);
  for (const [at, hit] of hits.entries()) {
    expect(hit._distance).toBeCloseTo(truth[at]?.distance ?? Number.NaN, 4);
    const shown = hit._source._chunks?.parts_chunks?.map((chunk) => chunk._content) ?? [];
    expect(shown).toHaveLength(1);
    expect(distance(asked, shown[0] ?? '')).toBeCloseTo(hit._distance, 4);
  }
}

const wordsOf = (text: string) => text.match(/\w+/g) ?? [];

/** The dot product of how often each word stands in two sentences. */
function shared(left: string, right: string): number {
  return wordsOf(left).reduce((sum, word) => sum + wordsOf(right).filter((other) => other === word).length, 0);
}

/** The documents that share a word with the question, by the first of their best sentences. */
function best(asked: string, lets: (tag: string) => boolean): { key: string; score: number; sentence: string }[] {
  const found = [...held].flatMap(([key, { sentences, tag }]) => {
    const score = Math.max(0, ...sentences.map((each) => shared(asked, each)));
    const sentence = sentences.find((each) => shared(asked, each) === score) ?? '';
    return score === 0 || !lets(tag) ? [] : [{ key, score, sentence }];
  });
  return found.sort((a, b) => b.score - a.score || (a.key < b.key ? -1 : 1));
}

async function compareSparse(table: string): Promise<void> {
  const asked = sentence();
  const { request, caller, lets, limit, context } = question(table, 'terms', asked);
  const hits = (await search(table, request, caller)).map(({ _id, _score, _source }) => {
    const shown = _source._chunks?.terms_chunks?.map((chunk) => chunk._content) ?? [];
    return { key: _id, score: _score, sentence: shown.join(' | ') };
  });
  expect({ ...context, hits }).toEqual({ ...context, hits: best(asked, lets).slice(0, limit) });
}

async function compareCounts(table: string): Promise<void> {
  const documents = [...held.values()].filter(({ sentences }) => sentences.length > 0);
  for (const index of ['parts', 'terms']) {
    const { ranges } = await database.services.indexes.get(table, index, owner);
    const sum = (count: 'docCount' | 'vectorCount') =>
      ranges.reduce((all, { stats }) => all + (stats?.[count] ?? 0), 0);
    expect({ seed, index, documents: sum('docCount'), vectors: sum('vectorCount') }).toEqual({
      seed,
      index,
      documents: documents.length,
      vectors: documents.reduce((all, { sentences }) => all + sentences.length, 0),
    });
  }
}

test('documents are found by the nearest of their chunks, whatever was written, in one range and in three', async () => {
  for (let round = 0; round < rounds; round += 1) {
    if (random.chance(0.25)) await reopen();
    await change();
    for (const table of ['in1', 'in3']) {
      await settle(table);
      await compareCounts(table);
      for (let query = 0; query < 8; query += 1) {
        await compare(table);
        await compareSparse(table);
      }
    }
  }
});
