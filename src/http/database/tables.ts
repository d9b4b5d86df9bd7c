import { Type } from '@sinclair/typebox';
import type { Caller } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import { createTableRequest, tableSchema, tableStatus } from '../../protocol/database/tables.ts';
import type { Table } from '../../tables/table.ts';
import type { TableService } from '../../tables/table-service.ts';
import { reply, type ValueReply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { ifMatch, schemaTag } from './schema-etag.ts';
import { renderTable, renderTables } from './table-status.ts';

const tableAnswer = { description: 'The table', schema: tableStatus, headers: { ETag: 'That of its schema' } };

export function tableRoutes(tables: TableService): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/db/v1/tables',
      access: 'tables',
      summary: 'List tables, sorted by name',
      tag: 'tables',
      query: Type.Object({
        prefix: Type.Optional(Type.String({ maxLength: limits.prefixCharsMax })),
        pattern: Type.Optional(Type.String({ maxLength: limits.patternCharsMax })),
      }),
      responses: { 200: { description: 'The tables', schema: Type.Array(tableStatus) } },
      handler: ({ query, caller }) => renderTables(tables.list(query.prefix, query.pattern, caller), caller),
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table',
      access: 'new-table',
      summary: 'Create a table; an empty body makes one that takes documents of any shape',
      tag: 'tables',
      body: { kind: 'json', schema: createTableRequest, bytesMax: limits.smallBodyBytesMax, optional: true },
      responses: { 200: tableAnswer },
      handler: async ({ params, body, caller }) =>
        tableReply(await tables.create(params.table, body ?? {}, caller), caller),
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/tables/:table',
      access: { table: 'read' },
      summary: 'Get a table',
      tag: 'tables',
      responses: { 200: tableAnswer },
      handler: ({ params, caller }) => tableReply(tables.get(params.table, caller, 'read'), caller),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/db/v1/tables/:table',
      access: { table: 'admin' },
      summary: 'Drop a table with its documents and indexes',
      tag: 'tables',
      responses: { 204: { description: 'Dropped' } },
      handler: async ({ params, caller }) => {
        await tables.drop(params.table, caller);
        return reply(204, undefined);
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/db/v1/tables/:table/schema',
      access: { table: 'admin' },
      summary: 'Replace the schema; a change of document types rebuilds full text in the background',
      tag: 'tables',
      headers: { 'If-Match': 'Only when the schema is still that of this "ETag"; 412 when it is not.' },
      body: { kind: 'json', schema: tableSchema, bytesMax: limits.smallBodyBytesMax },
      responses: { 200: tableAnswer },
      handler: async ({ params, body, request, caller }) =>
        tableReply(
          await tables.updateSchema(params.table, body, caller, ifMatch(request.headers.get('if-match'))),
          caller,
        ),
    }),
  ];
}

async function tableReply(table: Table, caller: Caller): Promise<ValueReply> {
  return reply(200, await renderTable(table, caller), { etag: schemaTag(table.settings.schema) });
}
