import { limits } from '../../config/limits.ts';
import {
  type IndexDefinition,
  type IndexKindName,
  isVectorIndex,
  kindOf,
  type VectorIndexDefinition,
} from '../../index-kinds/all-kinds.ts';
import { textLegName } from '../../index-kinds/full-text.ts';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import { invalidQuery, isObject, type Members, member, readNumber, readStrings } from '../nodes/query-members.ts';
import type { PlanLeg, PlanVectorSearch } from '../plan/native-plan.ts';
import { readFusion, readPruner } from './fusion-request.ts';
import { pageLimitDefault, type RequestedPage, refuseOrder } from './query-page.ts';
import { readQueryVector } from './query-vector.ts';
import { onlyEmbedder, readSemanticText, type SemanticText } from './semantic-search.ts';

/** The vector searches of a request. */
interface VectorSearch {
  plan: PlanVectorSearch;
  /** The query vectors of the legs that are given, one after another. */
  vectors: Uint8Array;
}

/** The indexes that a request may name. */
interface NamedIndexes {
  /** Of the table, others too. */
  all: readonly IndexDefinition[];
  /** Names of those that make vectors of texts. */
  embedders: ReadonlySet<string>;
}

interface SearchShape {
  page: RequestedPage;
  /** Whether the request also searches text. */
  hasText: boolean;
  /** Names of its graph searches whose nodes are fused with the other hits. */
  graphLegs?: readonly string[];
  /** Only the number of hits is wanted: as many of each search are looked at as may be. */
  countOnly?: boolean;
}

const defaultEffort = 0.5;
const where = 'query request';
/** Members that say something about searches by vectors alone. */
const refiningMembers = ['indexes', 'distance_under', 'distance_over'];

/**
 * Reads the members of a request that search by vectors, or cut hits by their scores; undefined when there are none.
 * Fails with `invalid_query` or `limit_exceeded` naming the member.
 */
export function readVectorSearch(
  request: Members,
  { semantic, searched, textIndex, namesVectors }: SearchedIndexes,
  shape: SearchShape,
): VectorSearch | undefined {
  const effort = readNumber(request, 'search_effort', { min: 0, max: 1 }, where) ?? defaultEffort;
  const legs = searched.map((each) => readLeg(each, effort));
  const { graphLegs = [] } = shape;
  const names = [...(shape.hasText ? [textLegName] : []), ...legs.map(({ leg }) => leg.name), ...graphLegs];
  const twin = graphLegs.find((name) => names.indexOf(name) !== names.lastIndexOf(name));
  if (twin !== undefined) {
    throw invalidQuery(`graph_searches.${twin}`, 'is a leg, and needs another name than what is searched beside it');
  }
  const window = shape.countOnly ? limits.queryLimitMax : shape.page.limit || pageLimitDefault;
  const { weights, ...fusion } = readFusion(request, names, window);
  const pruner = readPruner(request);
  if (legs.length === 0) {
    const without = refiningMembers.find((name) => member(request, name) !== undefined);
    if (without && (without !== 'indexes' || textIndex === undefined || namesVectors)) {
      const needed = '"embeddings" with a vector, or "semantic_search" with a text, to search for';
      throw invalidQuery(where, `"${without}" needs ${needed}`);
    }
    if (!pruner && graphLegs.length === 0) return undefined;
  }
  if (legs.length > 0 && textIndex !== undefined && !shape.hasText) {
    throw invalidQuery('indexes', `"${textIndex}" is a full-text index; search it with "full_text_search"`);
  }
  const [graphLeg] = graphLegs;
  const besideVectors = semantic ? 'semantic_search' : 'embeddings';
  const beside = legs.length > 0 ? besideVectors : graphLeg === undefined ? 'pruner' : `graph_searches.${graphLeg}.leg`;
  refuseOrder(request, shape.page, beside);
  return {
    plan: {
      legs: [...legs.map(({ leg }) => leg), ...graphLegs.map(graphLegOf)].map((leg) => ({
        ...leg,
        weight: weights.get(leg.name) ?? 1,
      })),
      ...(shape.hasText ? { text_weight: weights.get(textLegName) ?? 1 } : {}),
      // Hits beyond the page cost nothing to fuse when there is one leg.
      fusion: names.length > 1 ? fusion : { ...fusion, window: Math.max(fusion.window, window) },
      ...readDistances(request, legs),
      ...(pruner ? { pruner } : {}),
    },
    vectors: joined(legs.flatMap(({ vector }) => vector ?? [])),
  };
}

/** Its documents are brought before the search. */
function graphLegOf(name: string): Omit<PlanLeg, 'weight'> {
  return { name, kind: 'graph', bytes: 0 };
}

/** Hits of a request that says no `limit`: a sparse index has its own number when it is searched alone. */
export function defaultLimit({ searched }: SearchedIndexes, hasText: boolean): number | undefined {
  if (hasText) return undefined;
  const [only, ...others] = searched;
  return only && others.length === 0 ? kindOf(only.index).vectorSearch?.defaultLimit(only.index) : undefined;
}

/** An index that a request searches. */
interface SearchedIndex {
  index: VectorIndexDefinition;
  /** As it was given; undefined where it is to be made of the text. */
  vector?: { value: unknown };
}

/** A text to search by, and the indexes whose embedders are to make the vectors of their legs of it. */
export interface SemanticSearch extends SemanticText {
  indexes: ReadonlySet<string>;
}

/** The indexes that a request searches. */
export interface SearchedIndexes {
  /** By vectors. */
  searched: readonly SearchedIndex[];
  semantic: SemanticSearch | undefined;
  /** The full-text index among `indexes`. */
  textIndex: string | undefined;
  /** Whether there are others among `indexes`. */
  namesVectors: boolean;
}

/**
 * Reads which indexes a request searches: by vectors all that have one, and for a text the only one with an embedder; or
 * those that `indexes` names, in its order, where a full-text index may be among them. Fails with `invalid_query` naming the
 * member.
 */
export function readSearchedIndexes(request: Members, indexes: NamedIndexes): SearchedIndexes {
  const text = readSemanticText(request, indexes.embedders);
  const names = readIndexNames(request);
  const isText = (name: string) => indexes.all.some((each) => each.kind === 'full_text' && each.name === name);
  const [textIndex, second] = names.filter(isText);
  if (second !== undefined) {
    throw invalidQuery('indexes', `words are searched in one full-text index: name "${textIndex}" or "${second}"`);
  }
  const named = names.filter((name) => !isText(name));
  const searched = searchedIndexes(request, indexes, { named, hasText: text !== undefined });
  const embedded = searched.filter(({ vector }) => vector === undefined).map(({ index }) => index.name);
  const semantic = text && { ...text, indexes: new Set(embedded) };
  return { searched, semantic, textIndex, namesVectors: named.length > 0 };
}

/** `named`: the indexes of vectors that the request names. `hasText`: a text is to be searched by vectors. */
function searchedIndexes(
  request: Members,
  { all, embedders }: NamedIndexes,
  { named, hasText }: { named: readonly string[]; hasText: boolean },
): SearchedIndex[] {
  const embeddings = member(request, 'embeddings') ?? {};
  const hasVectors = member(request, 'embeddings') !== undefined;
  if (!isObject(embeddings)) throw invalidQuery('embeddings', 'must be an object of index name -> vector');
  const given = Object.keys(embeddings);
  if (hasVectors && given.length === 0) throw invalidQuery('embeddings', 'names no index: leave it out');
  for (const name of given) findIndex(name, all, 'embeddings');
  if (!hasVectors && !hasText) return [];
  const usual = () => (hasText ? [...new Set([...given, onlyEmbedder(request, embedders)])] : given);
  return (named.length > 0 ? named : usual()).map((name) => {
    const index = findIndex(name, all, 'indexes');
    if (Object.hasOwn(embeddings, name)) return { index, vector: { value: embeddings[name] } };
    if (hasText && embedders.has(name)) return { index };
    throw invalidQuery('indexes', `"${name}" has no vector in "embeddings", and no embedder to make one`);
  });
}

function readIndexNames(request: Members): string[] {
  const names = readStrings(request, 'indexes', limits.indexesPerTableMax, '') ?? [];
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw invalidQuery('indexes', `"${twice}" is named twice`);
  return names;
}

interface ReadLeg {
  index: VectorIndexDefinition;
  leg: Omit<PlanLeg, 'weight'>;
  /** Undefined until the text is embedded. */
  vector: Uint8Array | undefined;
}

function readLeg({ index, vector: given }: SearchedIndex, effort: number): ReadLeg {
  const { name, kind } = index;
  const vector = given && readQueryVector(given.value, index, `embeddings.${name}`);
  const leg = { name, kind, bytes: vector?.byteLength ?? 0 };
  return { index, leg: kindOf(index).vectorSearch?.takesEffort ? { ...leg, effort } : leg, vector };
}

/** An index that holds no vectors, in words. */
const withoutVectors: Readonly<Record<Exclude<IndexKindName, VectorIndexDefinition['kind']>, string>> = {
  full_text: 'a full-text index; search it with "full_text_search"',
  graph: 'a graph index; search it with "graph_searches"',
  algebraic: 'an algebraic index, which holds no vectors',
};

function findIndex(name: string, indexes: readonly IndexDefinition[], at: string): VectorIndexDefinition {
  const index = indexes.find((each) => each.name === name);
  if (index && !isVectorIndex(index)) throw invalidQuery(at, `"${name}" is ${withoutVectors[index.kind]}`);
  if (index) return index;
  const others = indexes.filter(isVectorIndex).map((each) => each.name);
  const shown = name.length > 64 ? `${name.slice(0, 64)}...` : name;
  throw invalidQuery(at, `the table has no embeddings index "${shown}".${suggestion(name, others)}`);
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
    throw invalidQuery(where, `"${name}" needs a dense index to search: other searches have no distance`);
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
