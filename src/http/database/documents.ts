import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import { jsonObject } from '../../protocol/database/tables.ts';
import { type ScanRequest, scanRequest } from '../../protocol/database/writes.ts';
import { olderVersionHeader, versionHeader } from '../../protocol/version-header.ts';
import type { DocumentReads, FoundDocument } from '../../tables/reads/document-reads.ts';
import { refuseMisspelledMembers } from '../../tables/writes/unknown-members.ts';
import { msgpackType, packedDocument, toMsgpack } from '../listener/msgpack/msgpack-answer.ts';
import { keptJsonHeaders, Reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const documentHeaders = keptJsonHeaders();
const lookupQuery = Type.Object({ fields: Type.Optional(Type.String()) });

/** Every read by key has two spellings on the wire with one meaning. */
export function documentRoutes(reads: DocumentReads): Route[] {
  return (['lookup', 'documents'] as const).flatMap((spelling) => [
    defineRoute({
      method: 'GET',
      path: `/db/v1/tables/:table/${spelling}/:key`,
      access: { table: 'read' },
      summary: 'Get a document by its key',
      description: 'The header `X-Service-Version` carries the version of the document, for optimistic commits.',
      tag: 'documents',
      query: lookupQuery,
      responses: { 200: { description: 'The document', schema: jsonObject } },
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
      responses: { 200: { description: 'The documents', contentType: 'application/x-ndjson' } },
      msgpack: true,
      handler: async ({ params, body, request, caller, acceptsMsgpack }) => {
        refuseMisspelledMembers(body ?? {}, Object.keys(scanRequest.properties), 'The body');
        const asArray = request.headers.get('accept') === 'application/json';
        const pages = await begun(await reads.scan(params.table, body ?? ({} as ScanRequest), caller));
        if (acceptsMsgpack) return new Response(msgpackStream(pages), { headers: { 'content-type': msgpackType } });
        return new Response(asArray ? arrayStream(pages) : lineStream(pages), {
          headers: { 'content-type': asArray ? 'application/json' : 'application/x-ndjson' },
        });
      },
    }),
  ]);
}

function documentReply({ json, version }: FoundDocument): Reply {
  const header = String(version);
  return new Reply(200, json, { [versionHeader]: header, [olderVersionHeader]: header }, documentHeaders);
}

/** Reads the first page at once: what fails there is answered with its own status, not with a stream that is cut. */
async function begun(pages: AsyncGenerator<string[]>): Promise<AsyncGenerator<string[]>> {
  const first = await pages.next();
  return (async function* () {
    try {
      if (first.done) return;
      yield first.value;
      yield* pages;
    } finally {
      await pages.return(undefined);
    }
  })();
}

/** Pages are pulled as the client reads, so that a scan of any size holds one page in memory. */
function lineStream(pages: AsyncGenerator<string[]>): ReadableStream<Uint8Array> {
  return pullStream(pages, (lines) => `${lines.join('\n')}\n`, '', '');
}

/** One value after another. */
function msgpackStream(pages: AsyncGenerator<string[]>): ReadableStream<Uint8Array> {
  return pullStream(pages, (lines) => Buffer.concat(lines.map((line) => toMsgpack(packedDocument(line)))), '', '');
}

function arrayStream(pages: AsyncGenerator<string[]>): ReadableStream<Uint8Array> {
  let first = true;
  const render = (lines: string[]) => {
    const text = (first ? '' : ',') + lines.join(',');
    first = false;
    return text;
  };
  return pullStream(pages, render, '[', ']');
}

function pullStream(
  pages: AsyncGenerator<string[]>,
  render: (lines: string[]) => string | Uint8Array,
  prologue: string,
  epilogue: string,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      if (prologue !== '') controller.enqueue(encoder.encode(prologue));
    },
    async pull(controller) {
      try {
        const next = await pages.next();
        if (!next.done) {
          const page = render(next.value);
          return controller.enqueue(typeof page === 'string' ? encoder.encode(page) : page);
        }
        if (epilogue !== '') controller.enqueue(encoder.encode(epilogue));
        controller.close();
      } catch (error) {
        controller.error(error);
      }
    },
    async cancel() {
      await pages.return(undefined);
    },
  });
}
