import { dayMs, hourMs, MiB, minuteMs, secondMs } from '../../lib/units.ts';
import { limits } from '../limits.ts';
import { option } from '../option.ts';
import { duration, flag, integer, size, text } from '../value-kind.ts';

/** The data directory, ranges, indexes and expiry. */
export const storageOptions = {
  dataDir: option({
    key: 'storage.data_dir',
    flag: '--data-dir',
    kind: text('path'),
    default: './data',
    help: 'Directory of all data; made when missing, held by one process at a time.',
    aliases: ['data_dir', 'storage.local.base_dir'],
  }),
  createsDataDir: option({
    key: 'storage.create',
    kind: flag(),
    default: true,
    help: 'Make a data directory where there is none. `false` refuses to start there: one that was removed, or lies on a volume that is not mounted, is then not taken for a new database.',
  }),
  reserveBytes: option({
    key: 'storage.reserve',
    kind: size(0, 64 * 1024 * MiB),
    default: limits.reserveBytes,
    help: 'Room that is kept in the data directory for a full disk: deletes, drops, committed writes and checkpoints get it.',
  }),
  compressBodies: option({
    key: 'storage.compress_bodies',
    kind: flag(),
    default: false,
    help: 'Compress the documents that are written from now on, but for those of relational tables: about a third of their bytes, for more processor time of a write.',
  }),
  defaultShardsPerTable: option({
    key: 'tables.default_shards',
    kind: integer(1, limits.shardsPerTableMax),
    default: 1,
    help: 'Key ranges of a table whose creation does not say.',
    aliases: ['default_shards_per_table'],
  }),
  visibilityDelayMs: option({
    key: 'indexing.visibility_delay',
    kind: duration(1, 10 * secondMs),
    default: limits.visibilityDelayMs,
    help: 'When a write that nobody waits for becomes searchable, at the latest.',
  }),
  checkpointIntervalMs: option({
    key: 'indexing.checkpoint_interval',
    kind: duration(secondMs, hourMs),
    default: limits.checkpointIntervalMs,
    help: 'How often an index that changes is made durable, so that a restart has less to replay.',
  }),
  openRangesMax: option({
    key: 'storage.open_ranges',
    kind: integer(1, 65_536),
    default: limits.openRangesMax,
    help: 'Key ranges that are open at one time; fewer where the limit of descriptors (`ulimit -n`) asks for it.',
  }),
  rangeIdleMs: option({
    key: 'storage.range_idle',
    kind: duration(secondMs, dayMs),
    default: limits.rangeIdleMs,
    help: 'Time without use after which a key range is closed, but for the 64 that were used last.',
  }),
  scrubIntervalMs: option({
    key: 'storage.scrub_interval',
    kind: duration(0, 365 * dayMs),
    default: limits.scrubIntervalMs,
    help: 'Time between two passes that read every stored document and check it against its checksum; 0s for none.',
  }),
  jobsKeptMs: option({
    key: 'jobs.retention',
    kind: duration(minuteMs, 365 * dayMs),
    default: limits.jobsKeptMs,
    help: 'How long a job that has ended, such as a restore, is kept and can be asked for.',
  }),
  ttlSweepIntervalMs: option({
    key: 'ttl.sweep_interval',
    kind: duration(100, dayMs),
    default: limits.ttlSweepIntervalMs,
    help: 'How often expired documents are deleted. They vanish from every read at once, whatever this says.',
  }),
  ttlGraceMs: option({
    key: 'ttl.grace',
    kind: duration(0, dayMs),
    default: limits.ttlGraceMs,
    help: 'How long after its expiry a document is deleted.',
  }),
} as const;
