import { forEachYielding } from '../../lib/concurrency/yield-to-event-loop.ts';
import { readFrame } from '../../lib/document-frame.ts';
import { compareKeys } from '../../lib/key-order.ts';
import { type MergeResponse, mergeRequest } from '../../protocol/database/writes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { AppliedWrite, RangeWrite } from '../../storage/write-request.ts';
import type { Table } from '../table.ts';
import { splitFrame } from './frame-split.ts';
import { type IndexWait, readSyncLevel } from './sync-level.ts';
import { refuseMisspelledMembers } from './unknown-members.ts';

interface MergeEnvelope {
  /** Exclusive lower bound of the keys that the page covers. */
  lastMergedId: string;
  /** The records are there, as an object that may be empty. */
  hasRecords: boolean;
  dryRun: boolean;
  wait: IndexWait;
}

interface MergePage {
  /** Exclusive. */
  from: string;
  /** Inclusive: the greatest key of the page; null for the last page, which covers all keys after `from`. */
  to: string | null;
}

export function readMergeEnvelope(json: string): MergeEnvelope {
  const envelope = JSON.parse(json) as Record<string, unknown>;
  refuseMisspelledMembers(envelope, Object.keys(mergeRequest.properties), 'The body');
  const lastMergedId = envelope.last_merged_id ?? '';
  const dryRun = envelope.dry_run ?? false;
  if (typeof lastMergedId !== 'string') throw new ServiceError('invalid_request', '"last_merged_id" must be a string');
  if (typeof dryRun !== 'boolean') throw new ServiceError('invalid_request', '"dry_run" must be a boolean');
  const hasRecords = Object.hasOwn(envelope, 'records');
  return { lastMergedId, hasRecords, dryRun, wait: readSyncLevel(envelope.sync_level, 'write') };
}

/**
 * An empty page ends a merge: nothing comes after `last_merged_id`. Without that it would empty the table, which nobody
 * asks for by sending nothing.
 */
export function checkRecords(envelope: MergeEnvelope, records: number): void {
  if (records > 0 || (envelope.hasRecords && envelope.lastMergedId !== '')) return;
  const message = envelope.hasRecords
    ? '"records" may be empty only together with "last_merged_id": the last call, which deletes every key after it'
    : '"records" must be an object of keys and documents';
  throw new ServiceError('invalid_request', message);
}

/** The work of each range: every range that the page's interval touches, with or without records of its own. */
export async function planMerge(
  bytes: Uint8Array<ArrayBuffer>,
  table: Table,
  envelope: MergeEnvelope,
): Promise<{ writes: RangeWrite[]; window: MergePage }> {
  const from = envelope.lastMergedId;
  const frame = readFrame(bytes);
  let greatest = from;
  await forEachYielding(frame.rowCount, (row) => {
    const key = frame.key(row);
    if (compareKeys(key, from) <= 0) {
      const message = `every key of "records" must come after "last_merged_id"; ${JSON.stringify(key)} does not`;
      throw new ServiceError('invalid_request', message);
    }
    if (compareKeys(key, greatest) > 0) greatest = key;
  });
  const to = frame.rowCount === 0 ? null : greatest;
  const frames = await splitFrame(bytes, table.ranges);
  const writes = table.ranges.flatMap((range, index): RangeWrite[] => {
    const beginsAfter = to !== null && compareKeys(range.startKey, to) > 0;
    const endsBefore = range.endKey !== null && compareKeys(range.endKey, from) <= 0;
    if (beginsAfter || endsBefore) return [];
    const own = frames[index];
    const merge = { afterKey: from, toKey: to, dryRun: envelope.dryRun };
    return [{ rangeId: range.rangeId, ttlField: table.ttlField, merge, ...(own ? { frame: own } : {}) }];
  });
  return { writes, window: { from, to } };
}

export function renderMerge(
  applied: readonly Pick<AppliedWrite, 'counts'>[],
  window: MergePage,
  dryRun: boolean,
  tookMs: number,
  warning: string | undefined,
): MergeResponse {
  const total = { upserted: 0, skipped: 0, deleted: 0, keysScanned: 0 };
  const deletedIds: string[] = [];
  for (const { counts } of applied) {
    total.upserted += counts.upserted;
    total.skipped += counts.skipped;
    total.deleted += counts.deleted;
    total.keysScanned += counts.keysScanned;
    for (const key of counts.deletedIds) deletedIds.push(key);
  }
  return {
    status: 'success',
    upserted: dryRun ? 0 : total.upserted,
    skipped: total.skipped,
    deleted: total.deleted,
    ...(dryRun ? { deleted_ids: deletedIds } : {}),
    failed: [],
    next_cursor: window.to ?? window.from,
    key_range: { from: window.from, to: window.to ?? '' },
    keys_scanned: total.keysScanned,
    message: warning ?? (dryRun ? 'nothing was changed' : ''),
    took: Math.round(tookMs),
  };
}
