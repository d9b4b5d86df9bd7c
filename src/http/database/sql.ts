import { limits } from '../../config/limits.ts';
import { sqlRequest, sqlResponse } from '../../protocol/database/sql.ts';
import type { SqlService } from '../../tables/relational/sql-service.ts';
import { rawJson } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';

export function sqlRoutes(sql: SqlService): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/sql',
      access: 'tables',
      summary: 'Read relational tables by SQL',
      description:
        'Every relational table that the statement names is a table of SQL, with the column `_id` beside its own and the rows ' +
        'that the caller may read, all as of one instant.',
      tag: 'query',
      body: { kind: 'json', schema: sqlRequest, bytesMax: limits.smallBodyBytesMax },
      responses: { 200: { description: 'The rows', schema: sqlResponse } },
      handler: async ({ body, caller }) => {
        const { columns, rows } = await sql.run(body, caller);
        return rawJson(200, `{"columns":${JSON.stringify(columns)},"rows":${rows}}`);
      },
    }),
  ];
}
