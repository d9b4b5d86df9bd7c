import { limits } from '../../config/limits.ts';
import { algorithmJob } from '../../protocol/database/graphs.ts';
import { jsonObject } from '../../protocol/database/tables.ts';
import type { AlgorithmService } from '../../tables/graph/algorithm-service.ts';
import { reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const path = '/db/v1/tables/:table/indexes/:index/algorithms';
const tag = 'graphs';
const job = { description: 'The job', schema: algorithmJob };

/** Algorithms over whole graphs, as jobs. */
export function graphAlgorithmRoutes(algorithms: AlgorithmService): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path,
      access: { table: 'read' },
      summary: 'Run an algorithm over a whole graph',
      description:
        '`algorithm` is `pagerank`, `connected_components` or `degree`. With `write_field` what it says of a node is written into ' +
        'its document, which needs the right to write. A caller with a row filter is refused.',
      tag,
      body: { kind: 'json', schema: jsonObject, bytesMax: limits.smallBodyBytesMax },
      responses: { 202: job },
      handler: async ({ params, body, caller }) =>
        reply(202, await algorithms.submit(params.table, params.index, body, caller)),
    }),
    defineRoute({
      method: 'GET',
      path: `${path}/:job`,
      access: { table: 'read' },
      summary: 'How far an algorithm is, and what it has found',
      tag,
      responses: { 200: job },
      handler: ({ params, caller }) => reply(200, algorithms.get(params.table, params.index, params.job, caller)),
    }),
    defineRoute({
      method: 'DELETE',
      path: `${path}/:job`,
      access: { table: 'read' },
      summary: 'Stop an algorithm',
      description:
        'What it has written into documents stays. To stop one that writes, or one that somebody else has asked for, needs the right ' +
        'to write.',
      tag,
      responses: { 200: job },
      handler: async ({ params, caller }) =>
        reply(200, await algorithms.cancel(params.table, params.index, params.job, caller)),
    }),
  ];
}
