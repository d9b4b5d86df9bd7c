import { Type } from '@sinclair/typebox';
import type { BackupOutcome, BackupService, ListedBackup } from '../../backup/backup-service.ts';
import { limits } from '../../config/limits.ts';
import {
  type BackupResponse,
  backupList,
  backupRequest,
  backupResponse,
  tableBackupRequest,
} from '../../protocol/database/backups.ts';
import { isErrorCode } from '../../protocol/error-codes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const tag = 'backup';
const bytesMax = limits.smallBodyBytesMax;
const pageDefault = 100;
const formatDefault = 'portable';

/** Backups at locations that connections of the configuration allow. */
export function backupRoutes(backups: BackupService): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/backup',
      access: 'admin',
      tag,
      summary: 'Back tables up',
      takesLong: true,
      description:
        'All tables are backed up as they are at one instant, while they are written. The answer is 200 also where tables failed: `status` is `completed` when there is a backup. Users, grants and secrets are not in it.',
      body: { kind: 'json', schema: backupRequest, bytesMax },
      responses: { 200: { description: 'What became of each table', schema: backupResponse } },
      async handler({ body, caller }) {
        const { backup_id: backupId, location, connection, table_names: tableNames, base_backup_id } = body;
        const { format = formatDefault } = body;
        const request = { backupId, location, connection, format, tableNames, baseBackupId: base_backup_id };
        return shownOutcome(await backups.create(request, caller));
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table/backup',
      access: { table: 'admin' },
      tag,
      summary: 'Back one table up',
      takesLong: true,
      description: 'As `POST /db/v1/backup` with one table; what fails is an error here.',
      body: { kind: 'json', schema: tableBackupRequest, bytesMax },
      responses: { 201: { description: 'The backup is there', schema: Type.Object({ backup: Type.String() }) } },
      async handler({ params, body, caller }) {
        const { backup_id: backupId, location, connection, base_backup_id: baseBackupId } = body;
        const { format = formatDefault } = body;
        const request = { backupId, location, connection, format, tableNames: [params.table], baseBackupId };
        const outcome = await backups.create(request, caller);
        if (outcome.status === 'completed') return { backup: 'successful' };
        const [{ code, error = 'the backup failed', retryable = false } = {}] = outcome.tables;
        if (isErrorCode(code)) throw new ServiceError(code, error);
        return reply(retryable ? 503 : 500, { code, error, message: error, retryable });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/backups',
      access: 'admin',
      tag,
      summary: 'The backups of a location, by their ids',
      query: Type.Object({
        location: Type.String({ description: '`file:///FOLDER` or `s3://BUCKET/PREFIX`' }),
        connection: Type.String({ description: 'A connection with `restore.read`' }),
        limit: Type.Optional(
          Type.Integer({ description: 'Backups of a page', minimum: 1, maximum: 1_000, default: pageDefault }),
        ),
        cursor: Type.Optional(Type.String({ description: 'The `next_cursor` of the page before.' })),
      }),
      responses: { 200: { description: 'A page of backups', schema: backupList } },
      async handler({ query, caller }) {
        const { location, connection, limit = pageDefault, cursor } = query;
        const page = await backups.list({ location, connection }, { limit, cursor }, caller);
        return { backups: page.backups.map(shownBackup), next_cursor: page.nextCursor ?? '' };
      },
    }),
  ];
}

function shownOutcome({ backupId, status, tables }: BackupOutcome): BackupResponse {
  return {
    backup_id: backupId,
    status,
    tables: tables.map(({ backupId: id, artifactBackupId, ...table }) => ({
      ...table,
      backup_id: id,
      artifact_backup_id: artifactBackupId,
    })),
  };
}

function shownBackup({ manifest, location }: ListedBackup) {
  const { backup_id, timestamp, tables, service_version, format, base_backup_id: base } = manifest;
  const names = tables.map(({ name }) => name);
  const entry = { backup_id, timestamp, tables: names, location, service_version, format };
  return base === null ? entry : { ...entry, base_backup_id: base };
}
