import { limits } from '../../config/limits.ts';
import { DurationError, parseDuration } from '../../lib/duration.ts';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import type { IndexConfig } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { EdgeTypeConfig, GraphConfig } from '../graph.ts';
import type { CommonIndexConfig } from '../index-kind.ts';

import type { ArtifactConfig } from './artifact-config.ts';
import { readEdgeSource } from './edge-source.ts';
import { readKeptGraphMembers } from './graph-kept-members.ts';
import { readIndexEnrichments } from './index-enrichments.ts';

const edgeTypeMembers = [
  'name',
  'field',
  'topology',
  'max_weight',
  'min_weight',
  'allow_self_loops',
  'required_metadata',
];

/** Checks what is particular to a graph index. Fails with `invalid_request`, naming the member. */
export function readGraphConfig(common: CommonIndexConfig, config: IndexConfig): GraphConfig {
  const members = config as Record<string, unknown>;
  const inline = readInline(members.artifact);
  const source = readEdgeSource(members, inline?.name);
  const { ttl_duration: ttl, edge_types: types, max_edges_per_document: most = 0 } = members;
  if (!(Number.isSafeInteger(most) && (most as number) >= 0 && (most as number) <= limits.edgesPerDocumentMax)) {
    const message = `"max_edges_per_document" must be an integer from 0, which is no bound, to ${limits.edgesPerDocumentMax}`;
    throw refused(message);
  }
  const edgeTypes = readEdgeTypes(types);
  if (source) refuseOfDocuments(edgeTypes);
  return {
    ...common,
    ...(inline === undefined ? {} : { enrichments: [...common.enrichments, inline] }),
    type: 'graph',
    ...(ttl === undefined ? {} : { ttl_duration: readTtl(ttl) }),
    edge_types: edgeTypes,
    max_edges_per_document: most as number,
    ...readKeptGraphMembers(members),
    ...source,
  };
}

/** The enrichment that an index declares for its edges. */
function readInline(artifact: unknown): ArtifactConfig | undefined {
  if (artifact === undefined) return undefined;
  const isNamed = typeof artifact === 'object' && artifact !== null && Object.hasOwn(artifact, 'name');
  const [inline] = isNamed ? readIndexEnrichments([artifact]) : [];
  if (typeof inline === 'object') return inline;
  throw refused('"artifact" must be an enrichment with a "name"; name one that the table has in "source.artifact"');
}

/** Edges of artifacts are known after the commit, when a write can be refused no more. */
function refuseOfDocuments(types: readonly EdgeTypeConfig[]): void {
  const type = types.find(({ field, topology }) => field !== undefined || topology === 'tree');
  if (!type) return;
  const member = type.field === undefined ? '"topology" of "tree"' : '"field"';
  throw refused(`"edge_types", type "${type.name}": ${member} goes with edges that come with their documents`);
}

function readTtl(ttl: unknown): string {
  if (typeof ttl !== 'string') throw refused('"ttl_duration" must be a duration such as "30d"');
  try {
    if (parseDuration(ttl) > 0) return ttl;
  } catch (error) {
    if (error instanceof DurationError) throw refused(`"ttl_duration": ${error.message}`);
    throw error;
  }
  throw refused('"ttl_duration" must be longer than nothing');
}

function readEdgeTypes(types: unknown): EdgeTypeConfig[] {
  if (types === undefined) return [];
  if (!Array.isArray(types)) throw refused('"edge_types" must be an array of objects with a "name"');
  if (types.length > limits.edgeTypesMax) throw refused(`"edge_types" may name at most ${limits.edgeTypesMax} types`);
  const read = types.map(readEdgeType);
  const names = read.map(({ name }) => name);
  const twin = names.find((name, at) => names.indexOf(name) !== at);
  if (twin !== undefined) throw refused(`"edge_types" has "${twin}" twice`);
  return read;
}

function readEdgeType(type: unknown): EdgeTypeConfig {
  const members = membersOf(type, 'each of "edge_types"');
  const stray = Object.keys(members).find((member) => !edgeTypeMembers.includes(member));
  if (stray !== undefined) {
    throw refused(`a type of edges has no member "${stray}".${suggestion(stray, edgeTypeMembers)}`);
  }
  const { name, field, topology = 'graph', min_weight: least = 0, max_weight: most } = members;
  if (typeof name !== 'string' || name === '' || Buffer.byteLength(name) > limits.edgeTypeBytesMax) {
    throw refused(`"edge_types": "name" must be a text of 1 to ${limits.edgeTypeBytesMax} bytes`);
  }
  const at = `"edge_types", type "${name}"`;
  if (topology !== 'graph' && topology !== 'tree') throw refused(`${at}: "topology" must be "graph" or "tree"`);
  if (!isWeight(least)) throw refused(`${at}: "min_weight" must be a number that 32 bits can hold`);
  if (most !== undefined && !(isWeight(most) && most >= least)) {
    throw refused(`${at}: "max_weight" must be a number from "min_weight" on that 32 bits can hold`);
  }
  const { allow_self_loops: loops = true, required_metadata: required = [] } = members;
  if (typeof loops !== 'boolean') throw refused(`${at}: "allow_self_loops" must be true or false`);
  if (!isStrings(required)) throw refused(`${at}: "required_metadata" must be an array of member names`);
  return {
    name,
    ...(field === undefined ? {} : { field: barePath(field, at) }),
    topology,
    min_weight: Math.fround(least),
    ...(most === undefined ? {} : { max_weight: Math.fround(most) }),
    allow_self_loops: loops,
    required_metadata: required,
  };
}

/** A path from the root, without what marks it as one. */
function barePath(field: unknown, at: string): string {
  const path = typeof field === 'string' && field.startsWith('$.') ? field.slice(2) : field;
  const isPath = typeof path === 'string' && path.length <= limits.fieldPathCharsMax;
  if (isPath && path.split('.').every((name) => name !== '' && !/[[\]*?'"]/.test(name)) && !path.startsWith('_')) {
    return path;
  }
  throw refused(`${at}: "field" must be a path of member names, such as "author" or "$.links.next"`);
}

function isWeight(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(Math.fround(value));
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && each !== '');
}

function membersOf(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw refused(`${what} must be an object`);
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
