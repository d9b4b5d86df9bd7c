import { type Static, Type } from '@sinclair/typebox';

/** Sync levels as they travel; `aknn` is an old name of `full_index`. */
export const syncLevels = ['propose', 'write', 'full_text', 'enrichments', 'full_index', 'aknn'] as const;
export type SyncLevel = (typeof syncLevels)[number];
export const syncLevel = Type.Union(syncLevels.map((level) => Type.Literal(level)));

/** Documentation of the batch body; the bytes are checked by the native scan, which also gives the offsets. */
export const batchRequest = Type.Object({
  inserts: Type.Optional(Type.Record(Type.String(), Type.Record(Type.String(), Type.Unknown()))),
  deletes: Type.Optional(Type.Array(Type.String())),
  transforms: Type.Optional(
    Type.Array(
      Type.Object({
        key: Type.String(),
        operations: Type.Array(
          Type.Object({ op: Type.String(), path: Type.String(), value: Type.Optional(Type.Unknown()) }),
        ),
        upsert: Type.Optional(Type.Boolean()),
      }),
    ),
  ),
  sync_level: Type.Optional(syncLevel),
});

export const batchCounts = Type.Object({
  inserted: Type.Integer(),
  deleted: Type.Integer(),
  transformed: Type.Integer(),
  failed: Type.Optional(
    Type.Integer({
      description:
        'Transforms that changed nothing because no operation fitted the value that it found; absent for none.',
    }),
  ),
});
export type BatchCounts = Static<typeof batchCounts>;

/**
 * `committed_repair_required`: the write is durable, but an index that it waits for has not followed in time, or a range
 * cannot take its part before its disk has room. Either follows by itself.
 */
const commitStatus = {
  status: Type.Union([Type.Literal('committed'), Type.Literal('committed_repair_required')]),
  error: Type.Optional(Type.String()),
};

export const batchResponse = Type.Composite([Type.Object(commitStatus), batchCounts]);

export const multiBatchRequest = Type.Object({
  tables: Type.Record(Type.String(), batchRequest),
  sync_level: Type.Optional(syncLevel),
});

export const multiBatchResponse = Type.Object({
  ...commitStatus,
  tables: Type.Record(Type.String(), batchCounts),
});

export const readSetItem = Type.Object({ table: Type.String(), key: Type.String(), version: Type.String() });
export type ReadSetItem = Static<typeof readSetItem>;

export const commitRequest = Type.Object({
  read_set: Type.Array(readSetItem),
  tables: Type.Record(Type.String(), batchRequest),
  sync_level: Type.Optional(syncLevel),
});

const transactionId = Type.Optional(Type.String({ description: 'Of a transaction over several requests' }));

const conflict = Type.Object({
  table: Type.String(),
  key: Type.String(),
  message: Type.String(),
  kind: Type.Literal('version_mismatch'),
  expected_version: Type.String({ description: 'The version that was read' }),
  current_version: Type.String(),
  retryable: Type.Literal(true),
});

export const commitConflict = Type.Object({ status: Type.Literal('aborted'), transaction_id: transactionId, conflict });

export const readConflict = Type.Object({ status: Type.Literal('conflict'), transaction_id: transactionId, conflict });

export const mergeRequest = Type.Object({
  records: Type.Record(Type.String(), Type.Record(Type.String(), Type.Unknown()), {
    description:
      'A page of the source. Empty only together with `last_merged_id`: the last call, which deletes every key after it.',
  }),
  last_merged_id: Type.Optional(Type.String()),
  dry_run: Type.Optional(Type.Boolean()),
  sync_level: Type.Optional(syncLevel),
});

export const mergeResponse = Type.Object({
  status: Type.Literal('success'),
  upserted: Type.Integer(),
  skipped: Type.Integer(),
  deleted: Type.Integer(),
  deleted_ids: Type.Optional(Type.Array(Type.String())),
  failed: Type.Array(Type.Unknown()),
  next_cursor: Type.String(),
  key_range: Type.Object(
    { from: Type.String(), to: Type.String() },
    { description: 'Keys after `from`, up to `to`; an empty `to` is the end of the keys.' },
  ),
  keys_scanned: Type.Integer(),
  message: Type.String(),
  took: Type.Integer(),
});
export type MergeResponse = Static<typeof mergeResponse>;

export const scanRequest = Type.Object({
  from: Type.Optional(Type.String()),
  to: Type.Optional(Type.String()),
  inclusive_from: Type.Optional(Type.Boolean()),
  exclusive_to: Type.Optional(Type.Boolean()),
  fields: Type.Optional(Type.Array(Type.String())),
  filter_query: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
  single_key: Type.Optional(
    Type.Boolean({
      description: 'Name the key `_id` alone; else it is `key` too, where the document has no such member.',
    }),
  ),
});
export type ScanRequest = Static<typeof scanRequest>;
