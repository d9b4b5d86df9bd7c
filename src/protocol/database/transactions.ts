import { Type } from '@sinclair/typebox';
import { commitRequest, multiBatchResponse, readSetItem, syncLevel } from './writes.ts';

export const beginRequest = Type.Object({ sync_level: Type.Optional(syncLevel) });

const transactionId = Type.String({ description: '32 hexadecimal digits' });
const instant = Type.String({ description: 'RFC 3339' });

export const beginResponse = Type.Object({
  transaction_id: transactionId,
  begin_timestamp: instant,
  sync_level: syncLevel,
});

export const sessionStatus = Type.Object({
  transaction_id: transactionId,
  owner_node_id: Type.Integer(),
  begin_timestamp: instant,
  last_touched_timestamp: instant,
  lease_expires_at: instant,
  lease_state: Type.Union([Type.Literal('none'), Type.Literal('held'), Type.Literal('expired')], {
    description: '`none`: the transaction is committed',
  }),
  sync_level: syncLevel,
  staged_table_count: Type.Integer(),
  staged_read_count: Type.Integer({ description: 'Versions that the commit checks' }),
  staged_write_count: Type.Integer({ description: 'Documents that are put or transformed' }),
  staged_delete_count: Type.Integer(),
  read_snapshot_count: Type.Integer({ description: 'Documents that the transaction has read itself' }),
  savepoint_count: Type.Integer(),
  savepoint_limit: Type.Integer(),
  remaining_savepoints: Type.Integer(),
  durable: Type.Boolean({ description: 'Whether the session outlives the process; it does not' }),
});

export const sessionDetails = Type.Composite([
  sessionStatus,
  Type.Object({
    tables: Type.Array(Type.Object({ table: Type.String(), writes: Type.Integer(), deletes: Type.Integer() })),
    read_snapshots: Type.Array(readSetItem),
    savepoint_ids: Type.Array(Type.Integer()),
  }),
]);

export const sessionList = Type.Object({
  session_count: Type.Integer(),
  lease_held_count: Type.Integer(),
  lease_expired_count: Type.Integer(),
  sessions: Type.Array(sessionStatus),
});

export const stageRequest = Type.Partial(commitRequest);

export const readRequest = Type.Object({
  table: Type.String(),
  key: Type.String(),
  version: Type.Optional(Type.String({ description: 'The version that the document must still have' })),
});

export const writeRequest = Type.Object({
  table: Type.String(),
  key: Type.String(),
  document: Type.Record(Type.String(), Type.Unknown()),
});

export const deleteRequest = Type.Object({ table: Type.String(), key: Type.String() });

const answered = { status: Type.String(), transaction_id: transactionId };
export const staged = Type.Object(answered);

export const snapshotResponse = Type.Object({
  ...answered,
  snapshot: Type.Object({
    table: Type.String(),
    key: Type.String(),
    version: Type.String({ description: 'Of the stored document; "0" where there is none' }),
    document: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]),
  }),
});

export const savepointResponse = Type.Object({ ...answered, savepoint_id: Type.Integer() });

export const sessionCommitResponse = Type.Composite([
  multiBatchResponse,
  Type.Object({ transaction_id: transactionId }),
]);

export const cleanUpResponse = Type.Object({
  removed: Type.Integer(),
  cutoff_ns: Type.Number({ description: 'Nanoseconds since 1970' }),
});
