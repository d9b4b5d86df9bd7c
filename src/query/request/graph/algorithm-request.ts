import { limits } from '../../../config/limits.ts';
import type { NativeAlgorithm } from '../../../engine/native-graph.ts';
import {
  checkMembers,
  invalidQuery,
  type Members,
  member,
  readInteger,
  readNumber,
  readString,
} from '../../nodes/query-members.ts';
import { type EdgeChoice, readEdgeChoice, readOneOf } from './graph-request.ts';

const algorithms = ['pagerank', 'connected_components', 'degree'] as const;

/** Something that is computed over all nodes of a graph. */
export interface AlgorithmRequest {
  name: (typeof algorithms)[number];
  algorithm: NativeAlgorithm;
  edges: EdgeChoice;
  /** Nodes, or components, of the answer. */
  limit: number;
  /** Dotted path of the member of each document that takes what was found of it; undefined where nothing is written. */
  writeField: string | undefined;
}

const commonMembers = ['algorithm', 'edge_types', 'min_weight', 'max_weight', 'limit', 'write_field'];
const ownMembers = {
  pagerank: ['damping', 'max_iterations', 'tolerance'],
  connected_components: [],
  degree: ['direction'],
} as const;
const limitDefault = 100;
const dampingDefault = 0.85;
const iterationsDefault = 100;
const toleranceDefault = 1e-8;
const where = 'algorithms';

/** Fails with `invalid_query`, naming the member. */
export function readAlgorithm(body: Members): AlgorithmRequest {
  const name = readOneOf(body, 'algorithm', algorithms, where);
  if (name === undefined) throw invalidQuery(where, `"algorithm" is missing: one of ${algorithms.join(', ')}`);
  checkMembers(body, [...commonMembers, ...ownMembers[name]], `${where}, ${name}`);
  return {
    name,
    algorithm: readOwn(name, body),
    edges: readEdgeChoice(body, where),
    limit: readInteger(body, 'limit', { min: 0, max: limits.graphStartsMax }, where) ?? limitDefault,
    writeField: readWriteField(body),
  };
}

function readOwn(name: AlgorithmRequest['name'], body: Members): NativeAlgorithm {
  if (name === 'connected_components') return name;
  if (name === 'degree') {
    const { direction } = readEdgeChoice({ direction: member(body, 'direction') ?? 'both' }, where);
    return { degree: { outgoing: direction !== 'in', incoming: direction !== 'out' } };
  }
  const iterations = { min: 1, max: limits.graphAlgorithmIterationsMax };
  return {
    pagerank: {
      damping: readNumber(body, 'damping', { min: 0, max: 1 }, where) ?? dampingDefault,
      max_iterations: readInteger(body, 'max_iterations', iterations, where) ?? iterationsDefault,
      tolerance: readNumber(body, 'tolerance', { min: 0, max: 1 }, where) ?? toleranceDefault,
    },
  };
}

function readWriteField(body: Members): string | undefined {
  const field = readString(body, 'write_field', where);
  if (field === undefined) return undefined;
  const path = field.startsWith('$.') ? field.slice(2) : field;
  const isPath = path.length <= limits.fieldPathCharsMax && !path.startsWith('_');
  if (isPath && path.split('.').every((part) => part !== '' && !/[[\]*?'"]/.test(part))) return path;
  throw invalidQuery(where, '"write_field" must be a path of member names, such as "rank" or "graph.rank"');
}
