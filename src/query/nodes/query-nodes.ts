import { didYouMean } from '../../lib/text/did-you-mean.ts';
import { allOf, anyOf, boolNode, matchAll, matchNone, type PlanNode, withBoost } from '../plan/plan-nodes.ts';
import { parseQueryString } from '../query-string/query-string.ts';
import type { NodeScope } from './node-scope.ts';
import { checkNesting } from './query-budget.ts';
import {
  readGeoBoundingBox,
  readGeoBox,
  readGeoDistance,
  readGeoPolygon,
  readGeoShape,
  readNamedGeoDistance,
} from './query-geo-nodes.ts';
import {
  readBoolField,
  readDocId,
  readExists,
  readIds,
  readMatch,
  readMatchPhrase,
  readMultiMatch,
  readPrefix,
  readTerm,
  readTerms,
} from './query-leaf-nodes.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  readBoost,
  readField,
  readInteger,
  readString,
} from './query-members.ts';
import {
  readDateRange,
  readMinMaxRange,
  readNamedDateRange,
  readNumericRange,
  readRange,
  readTermRange,
} from './query-range-nodes.ts';
import { readCidr, readFuzzy, readIpRange, readRegexp, readTermsPhrase, readWildcard } from './query-word-nodes.ts';

type NodeReader = (node: Members, scope: NodeScope) => PlanNode;

/** The member that makes a node what it is, and who reads it. */
const readers: ReadonlyMap<string, NodeReader> = new Map<string, NodeReader>([
  ['query', readQueryStringNode],
  ['match', readMatch],
  ['match_phrase', readMatchPhrase],
  ['multi_match', readMultiMatch],
  ['term', readTerm],
  ['terms', (node, scope) => (Array.isArray(node.terms) ? readTermsPhrase(node, scope) : readTerms(node, scope))],
  ['prefix', readPrefix],
  ['conjuncts', readConjunction],
  ['disjuncts', readDisjunction],
  ['must', readBoolean],
  ['should', readBoolean],
  ['must_not', readBoolean],
  ['filter', readBoolean],
  ['bool', readBool],
  ['match_all', (node, scope) => readConstant(node, 'match_all', scope)],
  ['match_none', (node, scope) => readConstant(node, 'match_none', scope)],
  ['ids', readIds],
  ['doc_id', readDocId],
  ['exists', readExists],
  ['range', readRange],
  ['numeric_range', readNumericRange],
  ['date_range', readNamedDateRange],
  ['term_range', readTermRange],
  ['start', readDateRange],
  ['end', readDateRange],
  ['min', readMinMaxRange],
  ['max', readMinMaxRange],
  ['wildcard', readWildcard],
  ['regexp', readRegexp],
  ['fuzzy', readFuzzy],
  ['cidr', readCidr],
  ['ip_range', readIpRange],
  ['top_left', readGeoBox],
  ['bottom_right', readGeoBox],
  ['location', readGeoDistance],
  ['distance', readGeoDistance],
  ['geo_distance', readNamedGeoDistance],
  ['geo_bounding_box', readGeoBoundingBox],
  ['polygon_points', readGeoPolygon],
  ['geometry', readGeoShape],
  ['ref', readReference],
]);

/** Members that mark a node only when nothing else does: other nodes have them as options. */
const weakMarks: ReadonlySet<string> = new Set(['min', 'max', 'filter']);

const boolMembers = ['must', 'should', 'must_not', 'filter', 'minimum_should_match', 'boost'];

/** The plan of one query node, or of an array of nodes that must all match. */
export function readQueryNode(value: unknown, scope: NodeScope): PlanNode {
  checkNesting(scope.depth);
  scope.budget.spend();
  if (Array.isArray(value)) return allOf(readNodes(value, scope));
  if (!isObject(value)) throw invalidQuery(scope.where, 'must be a query node such as {"query": "soup"}');
  return readerOf(value, scope.where)(value, scope);
}

function readerOf(node: Members, where: string): NodeReader {
  // Clients that have no empty object to give write `{"match_all": null}`.
  const isPresent = (name: string) => node[name] !== null || name === 'match_all' || name === 'match_none';
  const names = Object.keys(node).filter(isPresent);
  const marks = names.filter((name) => readers.has(name));
  const strong = marks.filter((name) => !weakMarks.has(name));
  const [first, ...others] = strong.length > 0 ? strong : marks;
  const reader = first === undefined ? undefined : readers.get(first);
  if (first !== undefined && reader) {
    const other = others.find((name) => readers.get(name) !== reader);
    if (other === undefined) return reader;
    throw invalidQuery(where, `a node says one thing, but this one has "${first}" and "${other}"`);
  }
  if (names.length === 0) throw invalidQuery(where, 'the node is empty; {"match_all": {}} matches everything');
  const guess = names.map((name) => didYouMean(name, readers.keys())).find((name) => name !== undefined);
  const shown = names.slice(0, 5).map((name) => `"${name.slice(0, 64)}"`);
  throw invalidQuery(where, `no query node has ${shown.join(', ')}.${guess ? ` Did you mean "${guess}"?` : ''}`);
}

function readQueryStringNode(node: Members, { where, budget, depth }: NodeScope): PlanNode {
  checkMembers(node, ['query', 'field', 'path', 'default_operator', 'boost'], where);
  const text = readString(node, 'query', where);
  if (text === undefined) throw invalidQuery(where, '"query" must be a string');
  budget.spendText(text);
  const operator = readString(node, 'default_operator', where)?.toLowerCase() ?? 'and';
  if (operator !== 'and' && operator !== 'or') throw invalidQuery(where, '"default_operator" must be "and" or "or"');
  const field = readField(node, where);
  const parsed = parseQueryString(text, { defaultOperator: operator, field, budget, where: `${where}.query`, depth });
  return withBoost(parsed, readBoost(node, where));
}

function readConjunction(node: Members, scope: NodeScope): PlanNode {
  checkMembers(node, ['conjuncts', 'boost'], scope.where);
  const nodes = readClauses(member(node, 'conjuncts'), inside(scope, 'conjuncts'));
  return withBoost(allOf(nodes), readBoost(node, scope.where));
}

function readDisjunction(node: Members, scope: NodeScope): PlanNode {
  checkMembers(node, ['disjuncts', 'min', 'boost'], scope.where);
  const { nodes, min } = readAlternatives(node, scope);
  // Older clients send 0 where they mean the default.
  return withBoost(anyOf(nodes, Math.max(1, min ?? 1)), readBoost(node, scope.where));
}

/** `{must: {conjuncts}, should: {disjuncts, min}, must_not: {disjuncts}, filter}`. */
function readBoolean(node: Members, scope: NodeScope): PlanNode {
  checkMembers(node, boolMembers, scope.where);
  return readBoolClauses(node, scope);
}

/** `{bool: {must, should, must_not, filter}}`, or `{bool: true, field}`. */
function readBool(node: Members, scope: NodeScope): PlanNode {
  const body = member(node, 'bool');
  if (!isObject(body)) return readBoolField(node, scope);
  checkMembers(node, ['bool', 'boost'], scope.where);
  const at = inside(scope, 'bool');
  checkMembers(body, boolMembers, at.where);
  return withBoost(readBoolClauses(body, at), readBoost(node, scope.where));
}

function readBoolClauses(body: Members, scope: NodeScope): PlanNode {
  const must = readClauseMember(body, 'must', 'conjuncts', scope);
  const mustNot = readClauseMember(body, 'must_not', 'disjuncts', scope);
  const filter = readClauseMember(body, 'filter', 'conjuncts', scope);
  const should = readShould(body, scope);
  const boost = readBoost(body, scope.where);
  const required = must.length > 0 || filter.length > 0;
  const asked = readInteger(body, 'minimum_should_match', minBounds, scope.where);
  // Older clients send a `min` of 0 where they mean the default.
  const min = asked ?? Math.max(should.min ?? 0, required ? 0 : Math.min(1, should.nodes.length));
  if (min > should.nodes.length) return matchNone;
  if (should.nodes.length > 0) {
    if (!required && min === 0) filter.push(matchAll);
    return boolNode({ must, should: should.nodes, must_not: mustNot, filter, min_should: min, boost });
  }
  return required || mustNot.length > 0 ? boolNode({ must, must_not: mustNot, filter, boost }) : matchAll;
}

const minBounds = { min: 0, max: 1_000_000 };

/** One node, an array of nodes, or the wrapper (`conjuncts`, `disjuncts`) that older clients put around them. */
function readClauseMember(body: Members, name: string, wrapper: string, scope: NodeScope): PlanNode[] {
  const value = member(body, name);
  if (value === undefined) return [];
  const at = inside(scope, name);
  if (!isWrapper(value, wrapper)) return readClauses(value, at);
  checkNesting(at.depth);
  checkMembers(value, wrapper === 'disjuncts' ? [wrapper, 'min', 'boost'] : [wrapper, 'boost'], at.where);
  const min = readInteger(value, 'min', minBounds, at.where) ?? 1;
  if (min > 1) return [readDisjunction(value, at)];
  const nodes = readClauses(member(value, wrapper), inside(at, wrapper));
  const boost = readBoost(value, at.where);
  return nodes.map((node) => withBoost(node, boost));
}

function readShould(body: Members, scope: NodeScope): { nodes: PlanNode[]; min: number | undefined } {
  const value = member(body, 'should');
  if (value === undefined) return { nodes: [], min: undefined };
  const at = inside(scope, 'should');
  if (!isWrapper(value, 'disjuncts')) return { nodes: readClauses(value, at), min: undefined };
  checkNesting(at.depth);
  checkMembers(value, ['disjuncts', 'min', 'boost'], at.where);
  const { nodes, min } = readAlternatives(value, at);
  const boost = readBoost(value, at.where);
  return { nodes: nodes.map((node) => withBoost(node, boost)), min };
}

function readAlternatives(node: Members, scope: NodeScope): { nodes: PlanNode[]; min: number | undefined } {
  return {
    nodes: readClauses(member(node, 'disjuncts'), inside(scope, 'disjuncts')),
    min: readInteger(node, 'min', minBounds, scope.where),
  };
}

function isWrapper(value: unknown, wrapper: string): value is Members {
  return isObject(value) && Object.hasOwn(value, wrapper);
}

function readClauses(value: unknown, scope: NodeScope): PlanNode[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? readNodes(value, scope) : [readQueryNode(value, scope)];
}

function readNodes(values: unknown[], scope: NodeScope): PlanNode[] {
  return values.map((value, index) =>
    readQueryNode(value, { ...scope, where: `${scope.where}[${index}]`, depth: scope.depth + 1 }),
  );
}

function inside(scope: NodeScope, name: string): NodeScope {
  return { ...scope, where: `${scope.where}.${name}`, depth: scope.depth + 1 };
}

function readConstant(node: Members, name: 'match_all' | 'match_none', { where }: NodeScope): PlanNode {
  checkMembers(node, [name, 'boost'], where);
  const body = member(node, name) ?? {};
  if (!isObject(body)) throw invalidQuery(where, `"${name}" must be an object: {"${name}": {}}`);
  checkMembers(body, ['boost'], `${where}.${name}`);
  const boost = readBoost(node, where) * readBoost(body, `${where}.${name}`);
  return name === 'match_none' ? matchNone : withBoost(matchAll, boost);
}

/** `{"ref": "name"}`: a filter of the request's `with`. */
function readReference(node: Members, scope: NodeScope): PlanNode {
  checkMembers(node, ['ref', 'boost'], scope.where);
  const name = readString(node, 'ref', scope.where);
  if (!name) throw invalidQuery(scope.where, '"ref" must name a filter');
  if (!scope.filters) throw invalidQuery(scope.where, 'the request names no filters: "with" is missing');
  return withBoost(scope.filters.resolve(name, scope), readBoost(node, scope.where));
}
