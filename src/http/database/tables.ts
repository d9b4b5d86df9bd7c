import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import { createTableRequest, tableSchema, tableStatus } from '../../protocol/database/tables.ts';
import type { Table } from '../../tables/table.ts';
import type { TableService } from '../../tables/table-service.ts';
import { type Reply, reply } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { ifMatch, schemaTag } from './schema-etag.ts';
import { renderTable, renderTables } from './table-status.ts';

export function tableRoutes(tables: TableService): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/db/v1/tables',
      summary: 'List tables, sorted by name',
      tag: 'tables',
      query: Type.Object({
        prefix: Type.Optional(Type.String({ maxLength: limits.prefixCharsMax })),
        pattern: Type.Optional(Type.String({ maxLength: limits.patternCharsMax })),
      }),
      responses: { 200: { description: 'The tables', schema: Type.Array(tableStatus) } },
      handler: ({ query }) => renderTables(tables.list(query.prefix, query.pattern)),
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table',
      summary: 'Create a table; an empty body makes one that takes documents of any shape',
      tag: 'tables',
      body: { kind: 'json', schema: createTableRequest, bytesMax: limits.smallBodyBytesMax, optional: true },
      responses: { 200: { description: 'The table', schema: tableStatus } },
      handler: async ({ params, body }) => tableReply(await tables.create(params.table, body ?? {})),
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/tables/:table',
      summary: 'Get a table',
      description: 'The header `ETag` is that of its schema.',
      tag: 'tables',
      responses: { 200: { description: 'The table', schema: tableStatus } },
      handler: ({ params }) => tableReply(tables.get(params.table)),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/db/v1/tables/:table',
      summary: 'Drop a table with its documents and indexes',
      tag: 'tables',
      responses: { 204: { description: 'Dropped' } },
      handler: async ({ params }) => {
        await tables.drop(params.table);
        return reply(204, undefined);
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/db/v1/tables/:table/schema',
      summary: 'Replace the schema; a change of document types rebuilds full text in the background',
      description: 'With `If-Match` only when the schema is still that of the `ETag`; 412 when it is not.',
      tag: 'tables',
      body: { kind: 'json', schema: tableSchema, bytesMax: limits.smallBodyBytesMax },
      responses: { 200: { description: 'The table', schema: tableStatus } },
      handler: async ({ params, body, request }) =>
        tableReply(await tables.updateSchema(params.table, body, ifMatch(request.headers.get('if-match')))),
    }),
  ];
}

async function tableReply(table: Table): Promise<Reply> {
  return reply(200, await renderTable(table), { etag: schemaTag(table.settings.schema) });
}
