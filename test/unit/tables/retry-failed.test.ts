import { expect, test } from 'bun:test';
import type { ProductionReport } from '../../../src/indexing/enrichment/part-producer.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { type RetriedRange, retryFailed } from '../../../src/tables/artifacts/retry-failed.ts';

/** A range with `failed` documents that have failed; it answers with `error` where that is given. */
function rangeOf(rangeId: number, failed: number, error?: Error): RetriedRange {
  const retryFailed = async ({ most }: { most: number }) => {
    if (error) throw error;
    return { count: Math.min(most, failed), nextKey: failed > most ? `k${rangeId}` : undefined };
  };
  const report = () => ({ retrying: 0, failed }) as ProductionReport;
  const documents = { get: () => undefined };
  return { rangeId, stored: { documents }, producer: () => ({ report, retryFailed }) };
}

test('a range that cannot take the request is named, and holds up no other', async () => {
  const full = new ServiceError('insufficient_storage', 'the disk is full');
  const ranges = [rangeOf(1, 2), rangeOf(2, 5, full), rangeOf(3, 4)];
  expect(await retryFailed('x', ranges, { limit: 4, from: undefined })).toEqual({
    ...{ scanned: 6, reprocessed: 4, skipped: 0, failed: 2 },
    failures: [{ shard_id: '2', code: 'insufficient_storage', error: 'the disk is full' }],
    cursors: [{ shard_id: '3', next_key: 'k3' }],
  });
  const fault = new TypeError('a mistake of ours');
  await expect(retryFailed('x', [rangeOf(1, 1, fault)], { limit: 4, from: undefined })).rejects.toBe(fault);
});
