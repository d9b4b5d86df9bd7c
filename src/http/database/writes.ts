import { limits } from '../../config/limits.ts';
import {
  batchRequest,
  batchResponse,
  mergeRequest,
  mergeResponse,
  multiBatchRequest,
  multiBatchResponse,
} from '../../protocol/database/writes.ts';
import type { BatchWriter } from '../../tables/writes/batch-writer.ts';
import type { WriteOutcome } from '../../tables/writes/visible-write.ts';
import { reply } from '../listener/reply.ts';
import { idempotencyKeyOf, idempotentWrite } from '../routing/idempotency-key.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const later = { description: 'Committed; what cannot be seen yet follows by itself' };
const bytesMax = limits.batchBodyBytesMax;
/** For the description of a route that writes documents. */
export const writeHelp =
  'A caller with a row filter may write only documents that it sees before the write and after it. Any other write answers ' +
  '403, and nothing of it is written.';

export function writeRoutes(writer: BatchWriter): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table/batch',
      access: { table: 'write' },
      summary: 'Insert, delete and transform documents, all or nothing',
      description: writeHelp,
      tag: 'documents',
      headers: idempotentWrite,
      body: { kind: 'bytes', schema: batchRequest, bytesMax, gzip: true },
      msgpack: true,
      responses: { 201: { description: 'Committed', schema: batchResponse }, 202: { ...later, schema: batchResponse } },
      handler: async ({ params, body, request, caller }) => {
        const outcome = await writer.batch(params.table, body, caller, idempotencyKeyOf(request));
        return committed(201, outcome, outcome.counts);
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/batch',
      access: 'tables',
      summary: 'Write to several tables, all or nothing',
      description: writeHelp,
      tag: 'documents',
      headers: idempotentWrite,
      body: { kind: 'bytes', schema: multiBatchRequest, bytesMax, gzip: true },
      msgpack: true,
      responses: {
        201: { description: 'Committed', schema: multiBatchResponse },
        202: { ...later, schema: multiBatchResponse },
      },
      handler: async ({ body, request, caller }) => {
        const outcome = await writer.multiBatch(body, caller, idempotencyKeyOf(request));
        return committed(201, outcome, { tables: outcome.counts });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table/merge',
      access: { table: 'write' },
      summary: 'Make a range of keys equal to a page of an outside source',
      description: `${writeHelp} Documents between the keys that it does not see are left alone.`,
      tag: 'documents',
      headers: idempotentWrite,
      body: { kind: 'bytes', schema: mergeRequest, bytesMax, gzip: true },
      msgpack: true,
      responses: { 200: { description: 'What was done, or would be done', schema: mergeResponse } },
      handler: ({ params, body, request, caller }) =>
        writer.merge(params.table, body, caller, idempotencyKeyOf(request)),
    }),
  ];
}

/** 202 says that the write is durable and must not be sent again, although not all of it can be seen yet. */
export function committed(usual: number, { status, error }: WriteOutcome<unknown>, counts: object) {
  if (status === 'committed') return reply(usual, { status, ...counts });
  return reply(202, { status, ...counts, ...(error === undefined ? {} : { error }) });
}
