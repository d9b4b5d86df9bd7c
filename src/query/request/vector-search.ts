import { limits } from '../../config/limits.ts';
import {
  type IndexDefinition,
  isVectorIndex,
  kindOf,
  type VectorIndexDefinition,
} from '../../index-kinds/all-kinds.ts';
import { textLegName } from '../../index-kinds/full-text.ts';
import { suggestion } from '../../lib/did-you-mean.ts';
import { invalidQuery, isObject, type Members, member, readNumber, readStrings } from '../nodes/query-members.ts';
import type { PlanLeg, PlanVectorSearch } from '../plan/native-plan.ts';
import { readFusion, readPruner } from './fusion-request.ts';
import { pageLimitDefault, type RequestedPage } from './query-page.ts';
import { readQueryVector } from './query-vector.ts';

/** The vector searches of a request. */
interface VectorSearch {
  plan: PlanVectorSearch;
  /** The query vectors of the legs, one after another. */
  vectors: Uint8Array;
}

interface SearchShape {
  page: RequestedPage;
  /** Whether the request also searches text. */
  hasText: boolean;
  /** Only the number of hits is wanted: as many of each search are looked at as may be. */
  countOnly?: boolean;
}

const defaultEffort = 0.5;
const where = 'query request';
/** Members that say something about the search by `embeddings` alone. */
const refiningMembers = ['indexes', 'distance_under', 'distance_over'];

/**
 * Reads the members of a request that search by vectors, or cut hits by their scores; undefined when there are none. `indexes` are those of the
 * table. Fails with `invalid_query` or `limit_exceeded` naming the member.
 */
export function readVectorSearch(
  request: Members,
  indexes: readonly IndexDefinition[],
  shape: SearchShape,
): VectorSearch | undefined {
  refuseSemanticSearch(request);
  const effort = readNumber(request, 'search_effort', { min: 0, max: 1 }, where) ?? defaultEffort;
  const legs = readLegs(request, indexes, effort);
  const names = [...(shape.hasText ? [textLegName] : []), ...legs.map(({ leg }) => leg.name)];
  const window = shape.countOnly ? limits.queryLimitMax : shape.page.limit || pageLimitDefault;
  const { weights, ...fusion } = readFusion(request, names, window);
  const pruner = readPruner(request);
  if (legs.length === 0) {
    const without = refiningMembers.find((name) => member(request, name) !== undefined);
    if (without) throw invalidQuery(where, `"${without}" needs "embeddings" with a vector to search for`);
    if (!pruner) return undefined;
  }
  refuseOrder(request, shape.page, legs.length === 0 ? 'pruner' : 'embeddings');
  return {
    plan: {
      legs: legs.map(({ leg }) => ({ ...leg, weight: weights.get(leg.name) ?? 1 })),
      ...(shape.hasText ? { text_weight: weights.get(textLegName) ?? 1 } : {}),
      // What is looked at beyond the page costs nothing to fuse when there is one leg.
      fusion: names.length > 1 ? fusion : { ...fusion, window: Math.max(fusion.window, window) },
      ...readDistances(request, legs),
      ...(pruner ? { pruner } : {}),
    },
    vectors: joined(legs.map(({ vector }) => vector)),
  };
}

/** Hits of a request that says no `limit`: a sparse index has its own number when it is searched alone. */
export function defaultLimit(
  request: Members,
  indexes: readonly IndexDefinition[],
  hasText: boolean,
): number | undefined {
  const embeddings = member(request, 'embeddings');
  if (hasText || !isObject(embeddings)) return undefined;
  const [name, ...others] = namesOf(request, embeddings);
  const index = others.length === 0 ? indexes.find((each) => each.name === name) : undefined;
  return index && kindOf(index).vectorSearch?.defaultLimit(index);
}

interface ReadLeg {
  index: VectorIndexDefinition;
  leg: Omit<PlanLeg, 'weight'>;
  vector: Uint8Array;
}

function readLegs(request: Members, indexes: readonly IndexDefinition[], effort: number): ReadLeg[] {
  const embeddings = member(request, 'embeddings');
  if (embeddings === undefined) return [];
  if (!isObject(embeddings)) throw invalidQuery('embeddings', 'must be an object of index name -> vector');
  if (Object.keys(embeddings).length === 0) throw invalidQuery('embeddings', 'names no index: leave it out');
  for (const name of Object.keys(embeddings)) findIndex(name, indexes, 'embeddings');
  return namesOf(request, embeddings).map((name) => {
    const index = findIndex(name, indexes, 'indexes');
    if (!Object.hasOwn(embeddings, name)) {
      throw invalidQuery('indexes', `"${name}" has no vector in "embeddings", and no embedder to make one`);
    }
    const at = `embeddings.${name}`;
    const vector = readQueryVector(embeddings[name], index, at);
    const leg = { name, kind: index.kind, bytes: vector.byteLength };
    return { index, leg: kindOf(index).vectorSearch?.takesEffort ? { ...leg, effort } : leg, vector };
  });
}

/** The indexes to search: all that have a vector, or those of them that `indexes` names. */
function namesOf(request: Members, embeddings: Members): string[] {
  const names = readStrings(request, 'indexes', limits.indexesPerTableMax, '') ?? [];
  if (names.length === 0) return Object.keys(embeddings);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw invalidQuery('indexes', `"${twice}" is named twice`);
  return names;
}

function findIndex(name: string, indexes: readonly IndexDefinition[], at: string): VectorIndexDefinition {
  const index = indexes.find((each) => each.name === name);
  if (index && !isVectorIndex(index)) {
    throw invalidQuery(at, `"${name}" is a full-text index; search it with "full_text_search"`);
  }
  if (index) return index;
  const others = indexes.filter(isVectorIndex).map((each) => each.name);
  const shown = name.length > 64 ? `${name.slice(0, 64)}...` : name;
  throw invalidQuery(at, `the table has no embeddings index "${shown}".${suggestion(name, others)}`);
}

function refuseSemanticSearch(request: Members): void {
  for (const name of ['semantic_search', 'embedding_template']) {
    if (member(request, name) === undefined) continue;
    throw invalidQuery(
      where,
      `"${name}" needs an index with an embedder, and no index of the table has one: ` +
        'make the vector yourself and give it in "embeddings"',
    );
  }
}

function refuseOrder(request: Members, { offset, sort, cursor }: RequestedPage, beside: string): void {
  const name = offset > 0 ? 'offset' : sort.length > 0 ? 'order_by' : undefined;
  if (name === undefined && cursor === undefined) return;
  const shown = name ?? (member(request, 'search_after') === undefined ? 'search_before' : 'search_after');
  throw invalidQuery(where, `"${shown}" cannot go with "${beside}": ask for the best hits with a larger "limit"`);
}

/** Distances are float32s: none is greater. */
const distanceMax = 3.4e38;

function readDistances(request: Members, legs: ReadLeg[]): Pick<PlanVectorSearch, 'distance_under' | 'distance_over'> {
  const bounds = { min: -distanceMax, max: distanceMax };
  const under = readNumber(request, 'distance_under', bounds, where);
  const over = readNumber(request, 'distance_over', bounds, where);
  if (under === undefined && over === undefined) return {};
  if (legs.every(({ index }) => !kindOf(index).vectorSearch?.hasDistance)) {
    const name = under === undefined ? 'distance_over' : 'distance_under';
    throw invalidQuery(where, `"${name}" needs a dense index in "embeddings": other searches have no distance`);
  }
  if (under !== undefined && over !== undefined && over > under) {
    throw invalidQuery(where, '"distance_over" is above "distance_under": nothing lies between them');
  }
  return {
    ...(under === undefined ? {} : { distance_under: under }),
    ...(over === undefined ? {} : { distance_over: over }),
  };
}

function joined(vectors: Uint8Array[]): Uint8Array {
  const [first] = vectors;
  return vectors.length === 1 && first ? first : Buffer.concat(vectors);
}
