import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import { queryRequest } from '../../protocol/database/query.ts';
import { jsonObject } from '../../protocol/database/tables.ts';
import { type ScanRequest, scanRequest } from '../../protocol/database/writes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { olderVersionHeader, versionHeader } from '../../protocol/version-header.ts';
import type { DocumentReads, FoundDocument } from '../../tables/reads/document-reads.ts';
import { refuseMisspelledMembers } from '../../tables/writes/unknown-members.ts';
import { keptJsonHeaders, Reply } from '../listener/reply.ts';
import { arrayPages, linePages, msgpackPages, pageStream } from '../listener/streams/page-stream.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const documentHeaders = keptJsonHeaders();
const scanMembers = Object.keys(scanRequest.properties);
const scanConditions = ['"from"', '"to"', '"filter_query"', '"limit"'];
const queryMembers: ReadonlySet<string> = new Set(
  Object.keys(queryRequest.properties).filter((name) => name !== 'table' && !scanMembers.includes(name)),
);
const lookupQuery = Type.Object({ fields: Type.Optional(Type.String()) });

/** Every read by key has two spellings on the wire with one meaning. */
export function documentRoutes(reads: DocumentReads): Route[] {
  return (['lookup', 'documents'] as const).flatMap((spelling) => [
    defineRoute({
      method: 'GET',
      path: `/db/v1/tables/:table/${spelling}/:key`,
      access: { table: 'read' },
      summary: 'Get a document by its key',
      tag: 'documents',
      query: lookupQuery,
      responses: {
        200: {
          description: 'The document',
          schema: jsonObject,
          headers: { 'X-Service-Version': 'Version of the document, for optimistic commits' },
        },
      },
      handler: ({ params, query, caller }) => {
        const fields = query.fields?.split(',').filter((field) => field !== '');
        const found = reads.lookup(params.table, params.key, fields?.length === 0 ? undefined : fields, caller);
        return found instanceof Promise ? found.then(documentReply) : documentReply(found);
      },
    }),
    defineRoute({
      method: 'POST',
      path: `/db/v1/tables/:table/${spelling}`,
      access: { table: 'read' },
      summary: 'Scan documents in key order',
      description: 'One JSON object a line; a JSON array when only `application/json` is accepted. Not a snapshot.',
      tag: 'documents',
      body: { kind: 'json', schema: scanRequest, bytesMax: limits.queryBytesMax, optional: true },
      responses: {
        200: {
          description: 'The documents',
          contentType: 'application/x-ndjson',
          also: { 'application/json': Type.Array(jsonObject) },
        },
      },
      msgpack: true,
      handler: async (context) => {
        const { params, body, request, caller } = context;
        refuseMisspelledMembers(body ?? {}, scanMembers, 'The body');
        refuseQueryMembers(body ?? {});
        const pages = await reads.scan(params.table, body ?? ({} as ScanRequest), caller);
        if (context.acceptsMsgpack) return pageStream(pages, msgpackPages, context);
        return pageStream(
          pages,
          request.headers.get('accept') === 'application/json' ? arrayPages : linePages,
          context,
        );
      },
    }),
  ]);
}

/**
 * A member of a query that a scan does not have would leave documents out, or put
 * them in order: ignored, it makes a wrong answer.
 */
function refuseQueryMembers(body: object): void {
  const name = Object.keys(body).find((each) => queryMembers.has(each));
  if (name === undefined) return;
  const message = `a scan has no "${name}"; its conditions are ${scanConditions.join(', ')}, and a query has all others`;
  throw new ServiceError('invalid_request', message);
}

function documentReply({ json, version }: FoundDocument): Reply {
  const header = String(version);
  return new Reply(200, json, { [versionHeader]: header, [olderVersionHeader]: header }, documentHeaders);
}
