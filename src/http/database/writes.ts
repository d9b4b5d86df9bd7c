import { limits } from '../../config/limits.ts';
import {
  batchRequest,
  batchResponse,
  commitConflict,
  commitRequest,
  mergeRequest,
  mergeResponse,
  multiBatchRequest,
  multiBatchResponse,
} from '../../protocol/database/writes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { BatchWriter, WriteIdentity, WriteOutcome } from '../../tables/batch-writer.ts';
import { idempotencyKeyHelp, idempotencyKeyOf } from '../idempotency-key.ts';
import { reply } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';

const later = { description: 'Committed; what cannot be seen yet follows by itself' };
const bytesMax = limits.batchBodyBytesMax;

export function writeRoutes(writer: BatchWriter): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table/batch',
      summary: 'Insert, delete and transform documents, all or nothing',
      description: idempotencyKeyHelp,
      tag: 'documents',
      body: { kind: 'bytes', schema: batchRequest, bytesMax, gzip: true },
      msgpack: true,
      responses: { 201: { description: 'Committed', schema: batchResponse }, 202: { ...later, schema: batchResponse } },
      handler: async ({ params, body, request, requestId }) => {
        const outcome = await writer.batch(params.table, body, identityOf(request, requestId));
        return committed(201, outcome, outcome.counts);
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/batch',
      summary: 'Write to several tables, all or nothing',
      description: idempotencyKeyHelp,
      tag: 'documents',
      body: { kind: 'bytes', schema: multiBatchRequest, bytesMax, gzip: true },
      msgpack: true,
      responses: {
        201: { description: 'Committed', schema: multiBatchResponse },
        202: { ...later, schema: multiBatchResponse },
      },
      handler: async ({ body, request, requestId }) => {
        const outcome = await writer.multiBatch(body, identityOf(request, requestId));
        return committed(201, outcome, { tables: outcome.counts });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/commit',
      summary: 'Write to several tables if what was read has not changed since',
      description: idempotencyKeyHelp,
      tag: 'documents',
      body: { kind: 'bytes', schema: commitRequest, bytesMax, gzip: true },
      msgpack: true,
      responses: {
        200: { description: 'Committed', schema: multiBatchResponse },
        202: { ...later, schema: multiBatchResponse },
        409: { description: 'Aborted: a document of the read set has changed', schema: commitConflict },
      },
      handler: async ({ body, request, requestId }) => {
        try {
          const outcome = await writer.commit(body, identityOf(request, requestId));
          return committed(200, outcome, { tables: outcome.counts });
        } catch (error) {
          if (!(error instanceof ServiceError) || error.code !== 'transaction_conflict') throw error;
          const { table = '', key = '' } = error.details ?? {};
          return reply(409, { status: 'aborted', conflict: { table, key, message: error.message } });
        }
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table/merge',
      summary: 'Make a range of keys equal to a page of an outside source',
      description: idempotencyKeyHelp,
      tag: 'documents',
      body: { kind: 'bytes', schema: mergeRequest, bytesMax, gzip: true },
      msgpack: true,
      responses: { 200: { description: 'What was done, or would be done', schema: mergeResponse } },
      handler: ({ params, body, request, requestId }) =>
        writer.merge(params.table, body, identityOf(request, requestId)),
    }),
  ];
}

function identityOf(request: Request, requestId: string): WriteIdentity {
  return { requestId, idempotencyKey: idempotencyKeyOf(request) };
}

/** 202 says that the write is durable and must not be sent again, although not all of it can be seen yet. */
function committed(usual: number, { status, error }: WriteOutcome<unknown>, counts: object) {
  if (status === 'committed') return reply(usual, { status, ...counts });
  return reply(202, { status, ...counts, ...(error === undefined ? {} : { error }) });
}
