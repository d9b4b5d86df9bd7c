import { type Static, Type } from '@sinclair/typebox';
import { backupFormat, nextCursor } from './backups.ts';

const strict = { additionalProperties: false };
const restoreMode = Type.Optional(
  Type.Union([Type.Literal('fail_if_exists'), Type.Literal('skip_if_exists'), Type.Literal('overwrite')], {
    description: 'What happens where a table of the name exists; `fail_if_exists` unless given.',
  }),
);
const from = {
  backup_id: Type.String(),
  location: Type.String({ description: '`file:///FOLDER` or `s3://BUCKET/PREFIX`.' }),
  connection: Type.Optional(Type.String({ description: 'A connection of the kind `external_io`.' })),
};

export const restorePhase = Type.Union([
  Type.Literal('queued'),
  Type.Literal('running'),
  Type.Literal('succeeded'),
  Type.Literal('failed'),
  Type.Literal('cancelled'),
]);
export const restoreScope = Type.Union([Type.Literal('cluster'), Type.Literal('table')]);

export const restoreRequest = Type.Object(
  {
    ...from,
    table_names: Type.Optional(Type.Array(Type.String(), { description: 'All of the backup unless given.' })),
    restore_mode: restoreMode,
  },
  strict,
);

export const tableRestoreRequest = Type.Object(
  { ...from, format: Type.Optional(backupFormat), restore_mode: restoreMode },
  strict,
);

const count = Type.Integer({ minimum: 0 });

export const restoreJob = Type.Object({
  job_id: Type.String(),
  attempt_id: Type.Integer(),
  scope: restoreScope,
  table_name: Type.Optional(Type.String()),
  backup_id: Type.String(),
  phase: restorePhase,
  cancel_requested: Type.Boolean(),
  durability_pending_table_count: count,
  published_table_count: count,
  completed_table_count: count,
  /** 0 until the backup was read, where the request names no tables. */
  total_table_count: count,
  result: Type.Optional(
    Type.Object({
      restore: Type.String(),
      durability: Type.String({
        description:
          '`committed`: what was to be published, or has been, is durable. `none`: the restore failed or was cancelled before it published anything.',
      }),
      status: Type.String({ description: '`completed`, `partial` or `failed`' }),
      triggered_table_count: count,
      committed_table_count: count,
      durability_pending_table_count: count,
      skipped_table_count: count,
      failed_table_count: count,
      failure_details: Type.Array(
        Type.Object({ table_name: Type.String(), error: Type.String(), table_name_truncated: Type.Boolean() }),
      ),
      failure_details_truncated: Type.Boolean(),
    }),
  ),
  error: Type.Optional(Type.String()),
  created_at_ms: Type.Integer(),
  updated_at_ms: Type.Integer(),
  expires_at_ms: Type.Optional(Type.Integer()),
});
export type RestoreJobBody = Static<typeof restoreJob>;

export const restoreJobList = Type.Object({
  jobs: Type.Array(restoreJob),
  next_cursor: nextCursor,
});
