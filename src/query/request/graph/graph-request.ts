import { limits } from '../../../config/limits.ts';
import type { EdgeDirection, WeightMode } from '../../../engine/native-graph.ts';
import { checkDocumentKey } from '../../../protocol/document-key.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  readBoolean,
  readInteger,
  readString,
  readStrings,
} from '../../nodes/query-members.ts';
import { compileProjection, type Projection } from '../projection/projection.ts';

/** The conditions of a request on nodes. */
export interface NodeFilter {
  /** A query node that their documents match. */
  filter_query?: unknown;
  /** The prefix of their keys. */
  filter_prefix?: string | undefined;
}

/** The conditions on the edges that a search follows. */
export interface EdgeChoice {
  edge_types: string[];
  direction: EdgeDirection;
  min_weight: number | undefined;
  max_weight: number | undefined;
}

/** Nodes within some steps of others. */
export interface TraverseRequest {
  starts: string[];
  edges: EdgeChoice;
  max_depth: number;
  max_results: number;
  deduplicate_nodes: boolean;
  include_paths: boolean;
  include_edges: boolean;
  /** Undefined where documents are not asked for. */
  documents: Projection | undefined;
  nodeFilter: NodeFilter | undefined;
}

/** The best paths from a node to another. */
export interface PathRequest {
  starts: string[];
  targets: string[];
  edges: EdgeChoice;
  max_depth: number;
  weight_mode: WeightMode;
  /** 0: the best path to each target; otherwise the number of paths to any of them. */
  k: number;
  /** The projection of the nodes of the paths; undefined where documents are not asked for. */
  documents: Projection | undefined;
  nodeFilter: NodeFilter | undefined;
}

const directions = ['out', 'in', 'both'] as const;
const weightModes = ['min_hops', 'min_weight', 'max_weight'] as const;
export const edgeMembers = ['edge_types', 'direction', 'min_weight', 'max_weight', 'node_filter'];
const traverseMembers = [
  ...edgeMembers,
  'start',
  'start_nodes',
  'max_depth',
  'max_results',
  'deduplicate_nodes',
  'include_paths',
  'include_edges',
  'include_documents',
  'fields',
];
const pathMembers = [...edgeMembers, 'source', 'target', 'max_depth', 'weight_mode', 'k'];
const depthDefault = 3;
const pathDepthDefault = 10;
const resultsDefault = 100;

/** Fails with `invalid_query`, naming the member. */
export function readTraverse(body: Members): TraverseRequest {
  const where = 'traverse';
  checkMembers(body, traverseMembers, where);
  return { starts: readStarts(body, where), ...readTraverseOptions(body, where) };
}

/** The members of a traversal beside its starts. */
export function readTraverseOptions(body: Members, where: string): Omit<TraverseRequest, 'starts'> {
  const results = readInteger(body, 'max_results', { min: 0, max: limits.graphResultsMax }, where);
  return {
    edges: readEdgeChoice(body, where),
    max_depth: readInteger(body, 'max_depth', { min: 1, max: limits.graphDepthMax }, where) ?? depthDefault,
    max_results: results === 0 ? limits.graphResultsMax : (results ?? resultsDefault),
    deduplicate_nodes: readBoolean(body, 'deduplicate_nodes', where) ?? true,
    include_paths: readBoolean(body, 'include_paths', where) ?? false,
    include_edges: readBoolean(body, 'include_edges', where) ?? false,
    documents: readDocuments(body, where),
    nodeFilter: readNodeFilter(body, where),
  };
}

function readDocuments(body: Members, where: string): Projection | undefined {
  const includesDocuments = readBoolean(body, 'include_documents', where) ?? false;
  // The projection has a bound of its own.
  const fields = readStrings(body, 'fields', Number.POSITIVE_INFINITY, where);
  if (fields && !includesDocuments) throw invalidQuery(where, '"fields" needs "include_documents"');
  return includesDocuments ? compileProjection(fields) : undefined;
}

/** Fails with `invalid_query`, naming the member. */
export function readPaths(body: Members): PathRequest {
  const where = 'shortest-path';
  checkMembers(body, pathMembers, where);
  return {
    starts: [readKey(body, 'source', where)],
    targets: [readKey(body, 'target', where)],
    ...readPathOptions(body, where),
    k: readInteger(body, 'k', { min: 1, max: limits.graphPathsMax }, where) ?? 1,
  };
}

/** The members of a search for paths beside its ends. */
export function readPathOptions(body: Members, where: string): Omit<PathRequest, 'starts' | 'targets' | 'k'> {
  return {
    edges: readEdgeChoice(body, where),
    max_depth: readInteger(body, 'max_depth', { min: 1, max: limits.graphDepthMax }, where) ?? pathDepthDefault,
    weight_mode: readOneOf(body, 'weight_mode', weightModes, where) ?? 'min_hops',
    documents: readDocuments(body, where),
    nodeFilter: readNodeFilter(body, where),
  };
}

export function readDirection(direction: string | undefined): EdgeDirection {
  return readOneOf({ direction }, 'direction', directions, 'edges') ?? 'out';
}

function readStarts(body: Members, where: string): string[] {
  const start = readString(body, 'start', where);
  const nodes = member(body, 'start_nodes');
  if ((start === undefined) === (nodes === undefined)) {
    throw invalidQuery(where, 'give either "start", a key, or "start_nodes", {"keys": [...]}');
  }
  if (start !== undefined) return [checkedKey(start)];
  if (!isObject(nodes)) throw invalidQuery(where, '"start_nodes" must be an object with "keys"');
  checkMembers(nodes, ['keys'], `${where}, start_nodes`);
  return readNodeKeys(nodes, `${where}, start_nodes`);
}

/** The member `keys` of an object that selects nodes. */
export function readNodeKeys(nodes: Members, where: string): string[] {
  const keys = readStrings(nodes, 'keys', limits.graphStartsMax, where) ?? [];
  if (keys.length === 0) throw invalidQuery(where, 'has no "keys"');
  return keys.map(checkedKey);
}

export function readEdgeChoice(body: Members, where: string): EdgeChoice {
  const [least, most] = [readWeight(body, 'min_weight', where), readWeight(body, 'max_weight', where)];
  return {
    edge_types: readStrings(body, 'edge_types', limits.edgeTypesMax, where) ?? [],
    direction: readOneOf(body, 'direction', directions, where) ?? 'out',
    min_weight: least,
    max_weight: most,
  };
}

export function readNodeFilter(body: Members, where: string): NodeFilter | undefined {
  const filter = member(body, 'node_filter');
  if (filter === undefined) return undefined;
  if (!isObject(filter)) throw invalidQuery(where, '"node_filter" must be an object');
  checkMembers(filter, ['filter_query', 'filter_prefix'], `${where}, node_filter`);
  return {
    filter_query: member(filter, 'filter_query'),
    filter_prefix: readString(filter, 'filter_prefix', `${where}, node_filter`),
  };
}

function readKey(body: Members, name: string, where: string): string {
  const key = readString(body, name, where);
  if (key === undefined) throw invalidQuery(where, `"${name}" is missing: the key of a node`);
  return checkedKey(key);
}

function checkedKey(key: string): string {
  checkDocumentKey(key);
  return key;
}

function readWeight(body: Members, name: string, where: string): number | undefined {
  const value = member(body, name);
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isFinite(Math.fround(value))) return Math.fround(value);
  throw invalidQuery(where, `"${name}" must be a number that 32 bits can hold`);
}

export function readOneOf<Name extends string>(
  body: Members,
  name: string,
  known: readonly Name[],
  where: string,
): Name | undefined {
  const value = readString(body, name, where);
  const found = known.find((each) => each === value);
  if (value === undefined || found !== undefined) return found;
  throw invalidQuery(where, `"${name}" must be one of ${known.join(', ')}`);
}
