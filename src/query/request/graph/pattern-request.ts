import { limits } from '../../../config/limits.ts';
import type { NativePatternEdge } from '../../../engine/native-graph.ts';
import { suggestion } from '../../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  readInteger,
  readString,
  readStrings,
} from '../../nodes/query-members.ts';
import type { Projection } from '../projection/projection.ts';
import {
  type EdgeChoice,
  type NodeFilter,
  readEdgeChoice,
  readNodeFilter,
  readTraverseOptions,
} from './graph-request.ts';

/** One node of a pattern. */
interface PatternElement {
  /** The name of its node in the answer; undefined for a node that is not shown. */
  alias: string | undefined;
  /** Elements of one alias have one number: they are the same node. */
  variable: number;
  /** How it is reached from the element before it; of the first nothing is read. */
  edge: NativePatternEdge;
  nodeFilter: NodeFilter | undefined;
}

/** Nodes that stand to each other in some way. */
export interface PatternRequest {
  elements: PatternElement[];
  /** Aliases of the answer. */
  returned: ReadonlySet<string>;
  max_results: number;
  matches_max: number;
  include_paths: boolean;
  /** Undefined where documents are not asked for. */
  documents: Projection | undefined;
  /** The condition on every node on the way. */
  nodeFilter: NodeFilter | undefined;
}

const elementMembers = ['alias', 'node_filter', 'edge'];
const edgeMembers = ['types', 'direction', 'min_hops', 'max_hops', 'min_weight', 'max_weight'];

/**
 * Reads the pattern of a graph search. `asked` holds the members of the search and of its `params`, whose choice of edges
 * holds for every element that makes none of its own. Fails with `invalid_query` or `limit_exceeded`.
 */
export function readPattern(asked: Members, where: string): PatternRequest {
  const pattern = member(asked, 'pattern');
  if (!Array.isArray(pattern) || pattern.length === 0) {
    throw invalidQuery(where, '"pattern" must be an array of elements such as {"alias": "a"}');
  }
  if (pattern.length > limits.graphPatternElementsMax) {
    const message = `${where}.pattern: has at most ${limits.graphPatternElementsMax} elements`;
    throw new ServiceError('limit_exceeded', message);
  }
  const { edges, max_results, include_paths, include_edges, documents, nodeFilter } = readTraverseOptions(asked, where);
  const variables = new Map<string, number>();
  const elements = pattern.map((element: unknown, at): PatternElement => {
    const here = `${where}.pattern[${at}]`;
    if (!isObject(element)) throw invalidQuery(here, 'must be an object');
    checkMembers(element, elementMembers, here);
    const alias = readString(element, 'alias', here);
    const variable = (alias === undefined ? undefined : variables.get(alias)) ?? at;
    if (alias !== undefined) variables.set(alias, variable);
    if (at === 0 && member(element, 'edge') !== undefined) {
      throw invalidQuery(here, '"edge" says how an element is reached from the one before it: the first has none');
    }
    return { alias, variable, edge: readEdge(element, edges, here), nodeFilter: readNodeFilter(element, here) };
  });
  return {
    elements,
    returned: readReturned(asked, [...variables.keys()], where),
    max_results,
    matches_max: limits.graphMatchesMax,
    include_paths: include_paths || include_edges,
    documents,
    nodeFilter,
  };
}

function readEdge(element: Members, usual: EdgeChoice, where: string): NativePatternEdge {
  const edge = member(element, 'edge') ?? {};
  const here = `${where}.edge`;
  if (!isObject(edge)) throw invalidQuery(here, 'must be an object');
  checkMembers(edge, edgeMembers, here);
  const { edge_types, ...own } = readEdgeChoice({ ...edge, edge_types: member(edge, 'types') }, here);
  const hops = (name: string, min: number) => readInteger(edge, name, { min, max: limits.graphDepthMax }, here);
  const min_hops = hops('min_hops', 0) ?? 1;
  const max_hops = hops('max_hops', 1) ?? Math.max(min_hops, 1);
  if (min_hops > max_hops) throw invalidQuery(here, '"min_hops" is above "max_hops"');
  return {
    types: member(edge, 'types') === undefined ? usual.edge_types : edge_types,
    direction: member(edge, 'direction') === undefined ? usual.direction : own.direction,
    min_weight: own.min_weight ?? usual.min_weight,
    max_weight: own.max_weight ?? usual.max_weight,
    min_hops,
    max_hops,
  };
}

function readReturned(asked: Members, aliases: readonly string[], where: string): ReadonlySet<string> {
  const named = readStrings(asked, 'return_aliases', limits.graphPatternElementsMax, where) ?? [];
  const stranger = named.find((alias) => !aliases.includes(alias));
  if (stranger !== undefined) {
    const shown = stranger.slice(0, 64);
    throw invalidQuery(
      where,
      `"return_aliases" names "${shown}", which no element has.${suggestion(stranger, aliases)}`,
    );
  }
  return new Set(named.length === 0 ? aliases : named);
}
