import type { TSchema } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import {
  edgesQuery,
  edgesResponse,
  pathsRequest,
  pathsResponse,
  traverseRequest,
  traverseResponse,
} from '../../protocol/database/graphs.ts';
import { jsonObject } from '../../protocol/database/tables.ts';
import type { GraphService } from '../../tables/graph/graph-service.ts';
import { type Reply, rawJson, reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const search = (documented: TSchema) =>
  ({ kind: 'json', schema: jsonObject, documented, bytesMax: limits.smallBodyBytesMax }) as const;
const graphPath = '/db/v1/tables/:table/indexes/:index';

export function graphRoutes(graphs: GraphService): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: `${graphPath}/edges`,
      access: { table: 'read' },
      summary: 'List the edges of a node',
      description: 'First those that lead away from it, then by type and by the key of the other end.',
      tag: 'graphs',
      query: edgesQuery,
      responses: { 200: { description: 'A page of edges', schema: edgesResponse } },
      handler: ({ params, query, caller }) => json(graphs.edges(params.table, params.index, query, caller)),
    }),
    defineRoute({
      method: 'POST',
      path: `${graphPath}/traverse`,
      access: { table: 'read' },
      summary: 'Find the nodes within some steps of others',
      tag: 'graphs',
      body: search(traverseRequest),
      responses: { 200: { description: 'The nodes, by depth and key', schema: traverseResponse } },
      handler: ({ params, body, caller }) => json(graphs.traverse(params.table, params.index, body, caller)),
    }),
    defineRoute({
      method: 'POST',
      path: `${graphPath}/shortest-path`,
      access: { table: 'read' },
      summary: 'Find the best paths between two nodes',
      tag: 'graphs',
      body: search(pathsRequest),
      responses: { 200: { description: 'The paths, best first', schema: pathsResponse } },
      handler: async ({ params, body, caller }) =>
        reply(200, await graphs.paths(params.table, params.index, body, caller)),
    }),
  ];
}

function json(text: string | Promise<string>): Reply | Promise<Reply> {
  return typeof text === 'string' ? rawJson(200, text) : text.then((json) => rawJson(200, json));
}
