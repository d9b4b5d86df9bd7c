import { expect } from 'bun:test';
import type { TestServer } from '../test-server.ts';

/** A result of a query, as far as these tests look. */
export interface VectorResult {
  hits: {
    total: { value: number; relation: string };
    max_score: number;
    hits: {
      _id: string;
      _score: number;
      _distance?: number;
      _index_scores?: Record<string, number>;
      _source: Record<string, unknown>;
      _explanation?: { value: number; description: string; details: { description: string }[] };
    }[];
  };
  aggregations?: Record<string, { value?: number }>;
  profile?: Record<string, unknown>;
  status: number;
  code?: string;
}

export interface Recipe {
  _timestamp: string;
  title: string;
  year: number;
  vegan: boolean;
  _embeddings: { euclid: number[]; angle: number[]; dot: number[]; tags: Record<string, number> };
}

export const dimension = 6;
export const denseMetrics = { euclid: 'l2_squared', angle: 'cosine', dot: 'inner_product' } as const;

const external = { type: 'embeddings', external: true };
export const recipeIndexes = {
  ...Object.fromEntries(
    Object.entries(denseMetrics).map(([name, distance_metric]) => [name, { ...external, dimension, distance_metric }]),
  ),
  tags: { ...external, sparse: true, top_k: 12 },
};

const words = ['leek', 'potato', 'soup', 'miso', 'tofu', 'stew', 'beef', 'bread', 'butter', 'winter'];

/** Numbers from 0 to 1, the same in every run; vectors are made of single-precision ones. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

export function randomVector(random: () => number): number[] {
  return Array.from({ length: dimension }, () => Math.fround(random() * 2 - 1));
}

export function randomTokens(random: () => number): Record<string, number> {
  const entries = Array.from({ length: 5 }, () => [String(Math.floor(random() * 40)), Math.fround(random() + 0.01)]);
  return Object.fromEntries(entries) as Record<string, number>;
}

/** Recipes by key; keys lie in all ranges of a table of four. */
export function recipes(count: number): Record<string, Recipe> {
  const random = randomNumbers(11);
  const entries = Array.from({ length: count }, (_, at): [string, Recipe] => [
    `${'09akluvz'[at % 8]}r${String((at * 7919) % 10_007).padStart(5, '0')}`,
    {
      _timestamp: '2026-01-01T00:00:00Z',
      title: Array.from({ length: 3 }, () => words[Math.floor(random() * words.length)]).join(' '),
      year: 2000 + (at % 50),
      vegan: at % 2 === 0,
      _embeddings: {
        euclid: randomVector(random),
        angle: randomVector(random),
        dot: randomVector(random),
        tags: randomTokens(random),
      },
    },
  ]);
  return Object.fromEntries(entries);
}

/** Creates a table of recipes with all indexes. */
export async function createRecipes(
  server: TestServer,
  table: string,
  shards: number,
  more: object = {},
): Promise<void> {
  const body = { num_shards: shards, indexes: recipeIndexes, ...more };
  expect(await server.send('POST', `/db/v1/tables/${table}`, body)).toMatchObject({ status: 200 });
}

/** Writes, and waits until every index shows it. */
export async function write(server: TestServer, table: string, batch: object): Promise<void> {
  const body = { ...batch, sync_level: 'full_index' };
  expect(await server.send('POST', `/db/v1/tables/${table}/batch`, body)).toMatchObject({ status: 201 });
}

/** The result of one query that works. */
export async function ask(server: TestServer, table: string, request: object): Promise<VectorResult> {
  const answer = await server.send<{ responses: VectorResult[] }>('POST', `/db/v1/tables/${table}/query`, request);
  expect(answer).toMatchObject({ status: 200 });
  const [result] = answer.body.responses;
  if (!result) throw new Error('no result');
  return result;
}
