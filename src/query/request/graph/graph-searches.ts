import { limits } from '../../../config/limits.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  readInteger,
  readString,
} from '../../nodes/query-members.ts';
import {
  edgeMembers,
  type NodeFilter,
  type PathRequest,
  readNodeFilter,
  readNodeKeys,
  readOneOf,
  readPathOptions,
  readTraverseOptions,
  type TraverseRequest,
} from './graph-request.ts';
import { type PatternRequest, readPattern } from './pattern-request.ts';

/** Nodes that a search of a query begins or ends at. */
export interface NodeSelector {
  /** Their keys, or what their keys are taken from. */
  from: { keys: string[] } | { ref: ResultReference; limit: number };
  filter: NodeFilter | undefined;
}

/** The results of an earlier search of the same request. */
export type ResultReference =
  | { kind: 'full_text' | 'fused' }
  | { kind: 'embeddings'; index: string }
  | { kind: 'graph'; name: string };

/** A search whose nodes are fused with the other hits of the query. */
interface GraphLeg {
  /** The measure by which its score falls: the score of a node is 1 / (1 + depth), or 1 / (1 + distance). */
  by: 'depth' | 'distance';
}

/** One member of `graph_searches`. */
export type GraphSearch = {
  name: string;
  index: string;
  starts: NodeSelector;
  /** The nodes that are not shown are wanted, too. */
  takesAll?: boolean;
} & (
  | { type: 'traverse' | 'neighbors'; asked: Omit<TraverseRequest, 'starts'>; leg?: GraphLeg | undefined }
  | {
      type: 'shortest_path' | 'k_shortest_paths';
      targets: NodeSelector;
      asked: Omit<PathRequest, 'starts' | 'targets'>;
    }
  | { type: 'pattern'; asked: PatternRequest }
);

const types = ['traverse', 'neighbors', 'shortest_path', 'k_shortest_paths', 'pattern'] as const;
const searchMembers = [
  'type',
  'index_name',
  'start_nodes',
  'target_nodes',
  'params',
  'pattern',
  'return_aliases',
  'include_documents',
  'include_edges',
  'fields',
  'node_filter',
  'leg',
];
const paramMembers = [
  ...edgeMembers,
  'max_depth',
  'max_results',
  'deduplicate_nodes',
  'include_paths',
  'weight_mode',
  'k',
  'algorithm',
  'algorithm_params',
];
/**
 * Members that have no effect on searches of a type. They are refused unless they have their default, which some
 * clients always send. Paths and their edges are always part of what a search for paths finds.
 */
const strangers = {
  traverse: ['target_nodes', 'pattern', 'return_aliases', 'weight_mode', 'k'],
  neighbors: ['target_nodes', 'pattern', 'return_aliases', 'weight_mode', 'k'],
  shortest_path: ['pattern', 'return_aliases', 'max_results', 'deduplicate_nodes'],
  k_shortest_paths: ['pattern', 'return_aliases', 'max_results', 'deduplicate_nodes'],
  pattern: ['target_nodes', 'max_depth', 'weight_mode', 'k', 'deduplicate_nodes'],
} as const;
const defaults = new Map<string, unknown>([
  ['weight_mode', 'min_hops'],
  ['k', 1],
  ['max_results', 100],
  ['deduplicate_nodes', true],
]);
const notBuiltParams = ['algorithm', 'algorithm_params'] as const;

/**
 * The graph searches of a query in the order in which their references need them; undefined where there are none. Fails
 * with `invalid_query`, also for references that go round in a circle.
 */
export function readGraphSearches(request: Members): GraphSearch[] | undefined {
  const given = ['graph_searches', 'graph_queries'].filter((name) => member(request, name) !== undefined);
  const [name = 'graph_searches', other] = given;
  if (other !== undefined) throw invalidQuery(other, 'is another name of "graph_searches": give one of them');
  const searches = member(request, name);
  if (searches === undefined) return undefined;
  if (!isObject(searches)) throw invalidQuery(name, 'must be an object of names and searches');
  const names = Object.keys(searches);
  if (names.length > limits.graphSearchesMax) {
    throw new ServiceError('limit_exceeded', `graph_searches: has at most ${limits.graphSearchesMax} searches`);
  }
  const ordered = inOrder(names.map((name) => readSearch(name, searches[name])));
  checkLegs(ordered);
  return ordered;
}

function readSearch(name: string, search: unknown): GraphSearch {
  const where = `graph_searches.${name.slice(0, 64)}`;
  if (!isObject(search)) throw invalidQuery(where, 'must be an object');
  checkMembers(search, searchMembers, where);
  const type = readOneOf(search, 'type', types, where);
  if (type === undefined) throw invalidQuery(where, `"type" is missing: one of ${types.join(', ')}`);
  const index = readString(search, 'index_name', where);
  if (index === undefined) throw invalidQuery(where, '"index_name" is missing: a graph index');
  const params = member(search, 'params') ?? {};
  if (!isObject(params)) throw invalidQuery(where, '"params" must be an object');
  checkMembers(params, paramMembers, `${where}.params`);
  refuseUnbuilt(params, notBuiltParams, `${where}.params`);
  const starts = readSelector(search, 'start_nodes', where);
  const [own, among] = [member(search, 'node_filter'), member(params, 'node_filter')];
  if (own !== undefined && among !== undefined) {
    throw invalidQuery(where, 'has a "node_filter" of its own and one in "params": give one of them');
  }
  const asked = { ...search, ...params, node_filter: own ?? among };
  const said = (each: string) => member(asked, each);
  const stray = strangers[type].find((each) => said(each) !== undefined && said(each) !== defaults.get(each));
  if (stray !== undefined) throw invalidQuery(where, `"${stray}" says nothing to a search of the type "${type}"`);
  const leg = readLeg(search, where);
  if (type === 'traverse' || type === 'neighbors') {
    return { name, index, type, starts, leg, asked: readTraversal(type, asked, where) };
  }
  if (leg) throw invalidQuery(where, '"leg" belongs to searches of the types "traverse" and "neighbors"');
  if (type === 'pattern') return { name, index, type, starts, asked: readPattern(asked, where) };
  const targets = readSelector(search, 'target_nodes', where);
  return {
    name,
    index,
    type,
    starts,
    targets,
    asked: { ...readPathOptions(asked, where), k: readK(type, params, where) },
  };
}

function readTraversal(type: 'traverse' | 'neighbors', asked: Members, where: string): Omit<TraverseRequest, 'starts'> {
  if (type === 'traverse') return readTraverseOptions(asked, where);
  const options = readTraverseOptions({ ...asked, max_depth: member(asked, 'max_depth') ?? 1 }, where);
  if (options.max_depth === 1) return options;
  throw invalidQuery(where, '"max_depth" of a search of the type "neighbors" is 1; "traverse" goes further');
}

function readK(type: 'shortest_path' | 'k_shortest_paths', params: Members, where: string): number {
  const k = readInteger(params, 'k', { min: 1, max: limits.graphPathsMax }, where) ?? 1;
  if (type === 'k_shortest_paths') return k;
  if (k === 1) return 0;
  throw invalidQuery(where, '"shortest_path" finds one path to each target; "k_shortest_paths" finds "k"');
}

/** The searches that others need before hits are searched for: legs, and what they begin at. They come in their order. */
export function searchesOfLegs(searches: readonly GraphSearch[]): GraphSearch[] {
  const needed = new Set<string>();
  for (const search of searches.toReversed()) {
    if (!isLeg(search) && !needed.has(search.name)) continue;
    needed.add(search.name);
    for (const name of needsOf(search)) needed.add(name);
  }
  return searches.filter(({ name }) => needed.has(name));
}

export function isLeg(search: GraphSearch): search is GraphSearch & { leg: GraphLeg } {
  return 'leg' in search && search.leg !== undefined;
}

/** The search begins or ends at hits of the request. */
export function beginsAtHits(search: GraphSearch): boolean {
  return selectorsOf(search).some(({ from }) => 'ref' in from && from.ref.kind !== 'graph');
}

/**
 * Refuses references to hits that there cannot be: of an index that the request does not search by vectors, and of a page
 * without any. Fails with `invalid_query`.
 */
export function checkReferences(
  searches: readonly GraphSearch[],
  { searched, showsHits }: { searched: readonly string[]; showsHits: boolean },
): void {
  for (const search of searches) {
    if (!showsHits && beginsAtHits(search)) {
      const message =
        'begins at hits of the page, which has none: ask for some, by a "limit" above 0 and without "count"';
      throw invalidQuery(`graph_searches.${search.name}`, message);
    }
    for (const { from } of selectorsOf(search)) {
      if (!('ref' in from) || from.ref.kind !== 'embeddings' || searched.includes(from.ref.index)) continue;
      const message = `"$embeddings_results.${from.ref.index.slice(0, 64)}": the request searches no such index by vectors`;
      throw invalidQuery(`graph_searches.${search.name}`, message);
    }
  }
}

/** Searches whose results make up the hits cannot begin at the hits. */
function checkLegs(searches: readonly GraphSearch[]): void {
  for (const search of searchesOfLegs(searches)) {
    if (!beginsAtHits(search)) continue;
    const message = 'is a leg of the query, or one begins at its nodes: it cannot begin at hits of the same query';
    throw invalidQuery(`graph_searches.${search.name}`, message);
  }
}

function readLeg(search: Members, where: string): GraphLeg | undefined {
  const leg = member(search, 'leg');
  if (leg === undefined || leg === false) return undefined;
  if (leg === true) return { by: 'depth' };
  if (!isObject(leg)) throw invalidQuery(where, '"leg" must be true, or {"by": "depth"} or {"by": "distance"}');
  checkMembers(leg, ['by'], `${where}.leg`);
  return { by: readOneOf(leg, 'by', ['depth', 'distance'], `${where}.leg`) ?? 'depth' };
}

function refuseUnbuilt(object: Members, names: readonly string[], where: string): void {
  const name = names.find((each) => member(object, each) !== undefined);
  if (name !== undefined) throw invalidQuery(where, `"${name}" is not built yet; leave it out`);
}

function readSelector(search: Members, name: string, where: string): NodeSelector {
  const selector = member(search, name);
  const at = `${where}.${name}`;
  if (!isObject(selector)) throw invalidQuery(where, `"${name}" must be an object with "keys" or "result_ref"`);
  checkMembers(selector, ['keys', 'result_ref', 'limit', 'node_filter'], at);
  const filter = readNodeFilter(selector, at);
  const ref = readString(selector, 'result_ref', at);
  if ((ref === undefined) === (member(selector, 'keys') === undefined)) {
    throw invalidQuery(at, 'give either "keys" or "result_ref"');
  }
  if (ref === undefined) {
    if (member(selector, 'limit') !== undefined)
      throw invalidQuery(at, '"limit" says how many nodes "result_ref" gives');
    return { from: { keys: readNodeKeys(selector, at) }, filter };
  }
  const limit = readInteger(selector, 'limit', { min: 1, max: limits.graphStartsMax }, at) ?? limits.graphStartsMax;
  return { from: { ref: readReference(ref, at), limit }, filter };
}

function readReference(ref: string, where: string): ResultReference {
  if (ref === '$full_text_results') return { kind: 'full_text' };
  if (ref === '$fused_results') return { kind: 'fused' };
  const [, kind, name] = /^\$(embeddings|graph)_results\.(.+)$/s.exec(ref) ?? [];
  if (kind === 'embeddings' && name !== undefined) return { kind, index: name };
  if (kind === 'graph' && name !== undefined) return { kind, name };
  const known = '$full_text_results, $fused_results, $embeddings_results.INDEX, $graph_results.NAME';
  throw invalidQuery(where, `"result_ref" must be one of ${known}`);
}

function selectorsOf(search: GraphSearch): NodeSelector[] {
  return 'targets' in search ? [search.starts, search.targets] : [search.starts];
}

/** The graph searches whose results a search begins or ends at. */
function needsOf(search: GraphSearch): string[] {
  return selectorsOf(search).flatMap(({ from }) => ('ref' in from && from.ref.kind === 'graph' ? [from.ref.name] : []));
}

function inOrder(searches: readonly GraphSearch[]): GraphSearch[] {
  const ordered: GraphSearch[] = [];
  const done = new Set<string>();
  const names = new Set(searches.map(({ name }) => name));
  for (const search of searches) {
    const stranger = needsOf(search).find((name) => !names.has(name));
    if (stranger === undefined) continue;
    throw invalidQuery(`graph_searches.${search.name}`, `"$graph_results.${stranger.slice(0, 64)}" names no search`);
  }
  while (ordered.length < searches.length) {
    const next = searches.find((search) => !done.has(search.name) && needsOf(search).every((name) => done.has(name)));
    if (!next) throw invalidQuery('graph_searches', 'the references of "result_ref" go round in a circle');
    done.add(next.name);
    ordered.push(next);
  }
  return ordered;
}
