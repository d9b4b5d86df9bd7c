import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import { onOneLine } from '../../lib/text/json-text.ts';
import { queryRequest, queryResponse, queryResult } from '../../protocol/database/query.ts';
import type { QueryService } from '../../query/query-service.ts';
import { msgpackReply, packedResult } from '../listener/msgpack/msgpack-answer.ts';
import { jsonPieces } from '../listener/reply.ts';
import { defineRoute, type Route, type RouteContext } from '../routing/route.ts';

export function queryRoutes(queries: QueryService): Route[] {
  const body = {
    kind: 'bytes',
    schema: Type.Union([queryRequest, Type.Array(queryRequest)]),
    also: { 'application/x-ndjson': queryRequest },
    bytesMax: limits.queryBodyBytesMax,
  } as const;
  const responses = {
    200: {
      description: 'One result for each query, in order; of several as lines where these are accepted',
      schema: queryResponse,
      also: { 'application/x-ndjson': queryResult },
    },
  };
  const description =
    'Several queries come as NDJSON, as JSON objects one after another, or as an array; a failed one answers in place.';
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/query',
      access: 'tables',
      summary: 'Query a table that the body names',
      description,
      tag: 'query',
      body,
      msgpack: true,
      responses,
      handler: (context) => answer(queries, undefined, context),
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table/query',
      access: { table: 'read' },
      summary: 'Query a table',
      description,
      tag: 'query',
      body,
      msgpack: true,
      responses,
      handler: (context) => answer(queries, context.params.table, context),
    }),
  ];
}

async function answer(
  queries: QueryService,
  table: string | undefined,
  context: RouteContext<object, unknown, Uint8Array>,
) {
  const results = await queries.run(table, context.body, context.caller);
  if (context.acceptsMsgpack)
    return msgpackReply(200, { responses: results.map((pieces) => packedResult(pieces.join(''))) });
  if (results.length > 1 && context.request.headers.get('accept') === 'application/x-ndjson') {
    const lines = results.flatMap((pieces) => [...pieces.map(onOneLine), '\n']);
    return jsonPieces(lines, { 'content-type': 'application/x-ndjson' });
  }
  const pieces = results.flatMap((result, index) => (index === 0 ? result : [',', ...result]));
  return jsonPieces(['{"responses":[', ...pieces, ']}']);
}
