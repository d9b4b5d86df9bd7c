import type { RestoreService } from '../../backup/restore/restore-service.ts';
import { limits } from '../../config/limits.ts';
import { restoreJob, restoreRequest, tableRestoreRequest } from '../../protocol/database/restores.ts';
import { reply } from '../listener/reply.ts';
import { idempotencyKeyOf } from '../routing/idempotency-key.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { restoreJobBody } from './restore-job-body.ts';

const tag = 'backup';
const bytesMax = limits.smallBodyBytesMax;

const description = 'A job does it, which goes on after a restart: the answer is the job.';
const headers = {
  'Idempotency-Key': 'A repetition gets the same job (200), and another body 409 "idempotency_conflict".',
};

/** Restores of backups. */
export function restoreRoutes(restores: RestoreService): Route[] {
  const submit = async (request: Parameters<RestoreService['submit']>[0], context: Parameters<Handler>[0]) => {
    const idempotencyKey = idempotencyKeyOf(context.request);
    const made = await restores.submit({ ...request, idempotencyKey }, context.caller);
    return reply(made.isNew ? 202 : 200, restoreJobBody(made));
  };
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/restore',
      access: 'admin',
      tag,
      summary: 'Restore tables of a backup',
      description,
      headers,
      body: { kind: 'json', schema: restoreRequest, bytesMax },
      responses: {
        202: { description: 'The job', schema: restoreJob },
        200: { description: 'The job of an earlier request', schema: restoreJob },
      },
      handler(context) {
        const { backup_id: backupId, location, connection, table_names: tableNames, restore_mode: mode } = context.body;
        return submit({ backupId, location, connection, tableNames, mode }, context);
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table/restore',
      access: 'new-table',
      tag,
      summary: 'Restore one table of a backup',
      description,
      headers,
      body: { kind: 'json', schema: tableRestoreRequest, bytesMax },
      responses: {
        202: { description: 'The job', schema: restoreJob },
        200: { description: 'The job of an earlier request', schema: restoreJob },
      },
      handler(context) {
        const { backup_id: backupId, location, connection, restore_mode: mode } = context.body;
        return submit({ backupId, location, connection, mode, tableName: context.params.table }, context);
      },
    }),
  ];
}

type Handler = (context: Pick<Parameters<Route['handler']>[0], 'request' | 'caller'>) => unknown;
