import { type Static, Type } from '@sinclair/typebox';
import { documentedText } from '../documented-text.ts';

const strict = { additionalProperties: false };
const location = Type.String({ description: '`file:///FOLDER` or `s3://BUCKET/PREFIX`.' });
const connection = Type.Optional(
  Type.String({
    description: 'A connection of the kind `external_io`. Needed where several connections allow the location.',
  }),
);
/** Of a list in pages. */
export const nextCursor = Type.String({
  description: 'The `cursor` of the next page; empty where this one is the last.',
});
const backupId = documentedText(
  '^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$',
  '1 to 128 letters, digits, `.`, `_` or `-`; never used twice.',
);
export const backupFormat = Type.Union([Type.Literal('portable'), Type.Literal('native')], {
  description:
    '`portable` (default): compressed lines of JSON that other tools read. `native`: the files of the ranges and their indexes, the fastest way back.',
});
const format = Type.Optional(backupFormat);
const baseBackupId = Type.Optional(
  Type.String({ description: 'A backup at this location: only what has changed since is copied.' }),
);

export const backupRequest = Type.Object(
  {
    backup_id: backupId,
    location,
    connection,
    format,
    table_names: Type.Optional(Type.Array(Type.String(), { description: 'All tables unless given.' })),
    base_backup_id: baseBackupId,
  },
  strict,
);

export const tableBackupRequest = Type.Object(
  { backup_id: backupId, location, connection, format, base_backup_id: baseBackupId },
  strict,
);

export const backupResponse = Type.Object({
  backup_id: Type.String(),
  status: Type.String({ description: '`completed`, `partial` or `failed`; without `completed` there is no backup.' }),
  tables: Type.Array(
    Type.Object({
      name: Type.String(),
      status: Type.String({ description: '`completed` or `failed`' }),
      error: Type.Optional(Type.String()),
      code: Type.Optional(Type.String({ description: 'An error code, or `backup_outcome_ambiguous`.' })),
      retryable: Type.Optional(Type.Boolean()),
      backup_id: Type.String(),
      artifact_backup_id: Type.String({ description: 'Names the files of this attempt.' }),
    }),
  ),
});
export type BackupResponse = Static<typeof backupResponse>;

export const backupList = Type.Object({
  backups: Type.Array(
    Type.Object({
      backup_id: Type.String(),
      timestamp: Type.String({ format: 'date-time' }),
      tables: Type.Array(Type.String()),
      location: Type.String(),
      service_version: Type.String(),
      format: Type.String(),
      base_backup_id: Type.Optional(Type.String()),
    }),
  ),
  next_cursor: nextCursor,
});
