import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import {
  beginRequest,
  beginResponse,
  cleanUpResponse,
  deleteRequest as deleteSchema,
  readRequest,
  savepointResponse,
  sessionCommitResponse,
  sessionDetails,
  sessionList,
  snapshotResponse,
  staged,
  stageRequest,
  writeRequest,
} from '../../protocol/database/transactions.ts';
import { commitConflict, commitRequest, multiBatchResponse, readConflict } from '../../protocol/database/writes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Snapshot, TransactionSessions } from '../../tables/transactions/transaction-sessions.ts';
import { deleteRequest, putRequest } from '../../tables/transactions/write-request.ts';
import type { BatchWriter } from '../../tables/writes/batch-writer.ts';
import { type Reply, rawJson, reply, type ValueReply } from '../listener/reply.ts';
import { idempotencyKeyOf, idempotentWrite } from '../routing/idempotency-key.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { renderSession, renderSessionDetails } from './transaction-status.ts';
import { committed, writeHelp } from './writes.ts';

const tag = 'transactions';
const bytesMax = limits.batchBodyBytesMax;
const later = { description: 'Committed; what cannot be seen yet follows by itself' };
const hasChanged = 'A document that was read has changed since';
const isStaged = { description: 'Staged: nothing is written before the commit', schema: staged };

/** Commits, and transactions that are put together over several requests. */
export function transactionRoutes(writer: Pick<BatchWriter, 'commit'>, sessions: TransactionSessions): Route[] {
  return [
    statelessCommit(writer),
    ...lifeRoutes(sessions),
    ...stageRoutes(sessions),
    ...savepointRoutes(sessions),
    ...endRoutes(sessions),
  ];
}

function statelessCommit(writer: Pick<BatchWriter, 'commit'>): Route {
  return defineRoute({
    method: 'POST',
    path: '/db/v1/transactions/commit',
    access: 'tables',
    summary: 'Write to several tables if what was read has not changed since',
    description: writeHelp,
    tag: 'documents',
    headers: idempotentWrite,
    body: { kind: 'bytes', schema: commitRequest, bytesMax, gzip: true },
    msgpack: true,
    responses: {
      200: { description: 'Committed', schema: multiBatchResponse },
      202: { ...later, schema: multiBatchResponse },
      409: { description: 'Aborted: a document of the read set has changed', schema: commitConflict },
    },
    handler: ({ body, request, caller }) =>
      orConflict('aborted', {}, async () => {
        const outcome = await writer.commit(body, caller, idempotencyKeyOf(request));
        return committed(200, outcome, { tables: outcome.counts });
      }),
  });
}

function lifeRoutes(sessions: TransactionSessions): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/begin',
      access: 'authenticated',
      tag,
      summary: 'Begin a transaction',
      description:
        'It is kept in memory, for the credential that has begun it, and lost when nobody uses it for a minute.',
      body: { kind: 'json', schema: beginRequest, bytesMax: limits.smallBodyBytesMax, optional: true },
      responses: { 201: { description: 'The transaction', schema: beginResponse } },
      handler: ({ body, caller }) => {
        const { id, beganMs, syncLevel } = sessions.begin(body?.sync_level, caller);
        return { transaction_id: id, begin_timestamp: new Date(beganMs).toISOString(), sync_level: syncLevel };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/transactions',
      access: 'authenticated',
      tag,
      summary: 'The transactions of this credential',
      responses: { 200: { description: 'Oldest first', schema: sessionList } },
      handler: ({ caller }) => {
        const all = sessions.list(caller).map((session) => renderSession(session, sessions));
        const count = (state: string) => all.filter(({ lease_state }) => lease_state === state).length;
        return {
          session_count: all.length,
          lease_held_count: count('held'),
          lease_expired_count: count('expired'),
          sessions: all,
        };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/transactions/:transaction',
      access: 'authenticated',
      tag,
      summary: 'What a transaction has read and staged',
      description: 'Does not renew its lease.',
      responses: { 200: { description: 'The transaction', schema: sessionDetails } },
      handler: ({ params, caller }) => renderSessionDetails(sessions.get(params.transaction, caller), sessions),
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/cleanup',
      access: 'authenticated',
      tag,
      summary: 'Forget transactions that are lost or committed',
      description: 'Of this credential, last used before `cutoff_ns` (now unless given). Those that are held stay.',
      query: Type.Object({ cutoff_ns: Type.Optional(Type.Number({ minimum: 0 })) }),
      responses: { 200: { description: 'How many were removed', schema: cleanUpResponse } },
      handler: ({ query, caller }) => {
        const cutoffNs = query.cutoff_ns ?? sessions.nowMs() * 1e6;
        return { removed: sessions.cleanUp(cutoffNs / 1e6, caller), cutoff_ns: cutoffNs };
      },
    }),
  ];
}

function stageRoutes(sessions: TransactionSessions): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/:transaction/stage',
      access: 'tables',
      tag,
      summary: 'Stage the body of a commit',
      description:
        'Its `read_set` may be absent. Later operations on a key replace, or are applied after, earlier ones.',
      body: { kind: 'bytes', schema: stageRequest, bytesMax, gzip: true },
      msgpack: true,
      responses: { 200: isStaged },
      handler: async ({ params, body, caller }) =>
        answerOf('staged', await sessions.stage(params.transaction, body, caller)),
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/:transaction/read',
      access: 'tables',
      tag,
      summary: 'Read a document as the commit would find it',
      description:
        'What is staged is part of it. The commit then checks that the stored document has not changed since.',
      body: { kind: 'json', schema: readRequest, bytesMax: limits.smallBodyBytesMax },
      responses: {
        200: { description: 'The document', schema: snapshotResponse },
        409: { description: hasChanged, schema: readConflict },
      },
      handler: ({ params, body, caller }) =>
        orConflict('conflict', { transaction_id: params.transaction }, async () =>
          renderSnapshot(params.transaction, await sessions.read(params.transaction, body, caller)),
        ),
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/:transaction/write',
      access: 'tables',
      tag,
      summary: 'Stage the put of a document',
      body: { kind: 'bytes', schema: writeRequest, bytesMax, gzip: true },
      msgpack: true,
      responses: { 200: isStaged },
      handler: async ({ params, body, caller }) =>
        answerOf('staged', await sessions.stage(params.transaction, putRequest(body), caller)),
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/:transaction/delete',
      access: 'tables',
      tag,
      summary: 'Stage the delete of a document',
      body: { kind: 'json', schema: deleteSchema, bytesMax: limits.smallBodyBytesMax },
      responses: { 200: isStaged },
      handler: async ({ params, body, caller }) =>
        answerOf('staged', await sessions.stage(params.transaction, deleteRequest(body), caller)),
    }),
  ];
}

function savepointRoutes(sessions: TransactionSessions): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/:transaction/savepoints',
      access: 'authenticated',
      tag,
      summary: 'Set a savepoint',
      responses: { 200: { description: 'The savepoint', schema: savepointResponse } },
      handler: async ({ params, caller }) => {
        const id = await sessions.savepoint(params.transaction, caller);
        return { status: 'active', transaction_id: params.transaction, savepoint_id: id };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/:transaction/savepoints/:savepoint/rollback',
      access: 'authenticated',
      tag,
      summary: 'Forget what was staged after a savepoint',
      description: 'The savepoint stays, and later ones then mean the same place. What was read is still checked.',
      responses: { 200: { description: 'Rolled back', schema: savepointResponse } },
      handler: async ({ params, caller }) => {
        const id = savepointOf(params.savepoint);
        await sessions.rollback(params.transaction, id, caller);
        return { status: 'rolled_back', transaction_id: params.transaction, savepoint_id: id };
      },
    }),
  ];
}

function endRoutes(sessions: TransactionSessions): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/:transaction/commit',
      access: 'tables',
      tag,
      summary: 'Commit a transaction',
      description: 'A repetition gets the same answer. After 409 `aborted` there is no such transaction any more.',
      responses: {
        200: { description: 'Committed', schema: sessionCommitResponse },
        202: { ...later, schema: sessionCommitResponse },
        409: { description: hasChanged, schema: commitConflict },
      },
      handler: ({ params, caller }) =>
        orConflict('aborted', { transaction_id: params.transaction }, async () => {
          const { tables, ...outcome } = await sessions.commit(params.transaction, caller);
          return committed(200, { ...outcome, counts: tables }, { transaction_id: params.transaction, tables });
        }),
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/transactions/:transaction/abort',
      access: 'authenticated',
      tag,
      summary: 'Abort a transaction: nothing of it is written',
      responses: { 200: { description: 'Aborted', schema: staged } },
      handler: async ({ params, caller }) => {
        await sessions.abort(params.transaction, caller);
        return { status: 'aborted', transaction_id: params.transaction };
      },
    }),
  ];
}

/** A conflict has an answer of its own shape, which names the document. */
async function orConflict<Answer>(
  status: string,
  beside: object,
  answer: () => Promise<Answer>,
): Promise<Answer | ValueReply> {
  try {
    return await answer();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'transaction_conflict') throw error;
    const { table = '', key = '', expected_version, current_version } = error.details ?? {};
    const { message } = error;
    const facts = { table, key, message, kind: 'version_mismatch', expected_version, current_version, retryable: true };
    return reply(409, { status, ...beside, conflict: facts });
  }
}

function answerOf(status: string, { id }: { readonly id: string }) {
  return { status, transaction_id: id };
}

/** The document leaves as it is spelled. */
function renderSnapshot(id: string, { table, key, version, json }: Snapshot): Reply {
  const head = JSON.stringify({ status: 'read', transaction_id: id }).slice(0, -1);
  const snapshot = JSON.stringify({ table, key, version }).slice(0, -1);
  return rawJson(200, `${head},"snapshot":${snapshot},"document":${json ?? 'null'}}}`);
}

function savepointOf(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new ServiceError('invalid_request', 'the id of a savepoint is an integer');
}
