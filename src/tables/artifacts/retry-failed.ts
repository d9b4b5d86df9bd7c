import type { PartProducer, RetriedDocuments } from '../../indexing/enrichment/part-producer.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { StoredDocument } from '../../storage/reader/document-store.ts';

/** A range, as far as failed artifacts are tried again in it. */
export interface RetriedRange {
  readonly rangeId: number;
  readonly stored: { readonly documents: { get(key: string): Pick<StoredDocument, 'ordinal'> | undefined } };
  producer(name: string): Pick<PartProducer, 'report' | 'retryFailed'> | undefined;
}

/** The result of a request to make failed artifacts again. Documents count. */
export interface Reprocessed {
  /** Those that were looked at. */
  readonly scanned: number;
  /** Those that are tried again now. */
  readonly reprocessed: number;
  /** Those that had not failed. */
  readonly skipped: number;
  /** Those that cannot be tried again now, for the reasons in `failures`. */
  readonly failed: number;
  readonly failures: readonly { readonly shard_id: string; readonly code: string; readonly error: string }[];
  /** Where a next request goes on: the first failed document that is left, in each range that has some. */
  readonly cursors: readonly { readonly shard_id: string; readonly next_key: string }[];
}

/** Has the artifact of one document made again where it has failed. */
export async function retryOne(name: string, range: RetriedRange, only: number): Promise<Reprocessed> {
  const found = await retryRange(name, range, { most: 1, only });
  const isIdle = found.reprocessed + found.failed === 0;
  return isIdle ? { ...found, scanned: 1, skipped: 1 } : found;
}

/** Has failed artifacts made again, range by range; `from`: the key of a document of the first range to begin with. */
export async function retryFailed(
  name: string,
  ranges: readonly RetriedRange[],
  { limit, from }: { limit: number; from: string | undefined },
): Promise<Reprocessed> {
  let all: Reprocessed = { scanned: 0, reprocessed: 0, skipped: 0, failed: 0, failures: [], cursors: [] };
  for (const [at, range] of ranges.entries()) {
    const first = at === 0 && from !== undefined ? range.stored.documents.get(from)?.ordinal : undefined;
    const of = await retryRange(name, range, { most: limit - all.reprocessed, from: first });
    all = {
      scanned: all.scanned + of.scanned,
      reprocessed: all.reprocessed + of.reprocessed,
      skipped: all.skipped + of.skipped,
      failed: all.failed + of.failed,
      failures: [...all.failures, ...of.failures],
      cursors: [...all.cursors, ...of.cursors],
    };
  }
  return all;
}

async function retryRange(name: string, range: RetriedRange, which: RetriedDocuments): Promise<Reprocessed> {
  const producer = range.producer(name);
  const shard_id = String(range.rangeId);
  const nothing = { scanned: 0, reprocessed: 0, skipped: 0, failed: 0, failures: [], cursors: [] };
  if (!producer) return nothing;
  try {
    const { count, nextKey } = await producer.retryFailed(which);
    const cursors = nextKey === undefined ? [] : [{ shard_id, next_key: nextKey }];
    return { ...nothing, scanned: count, reprocessed: count, cursors };
  } catch (thrown) {
    if (!(thrown instanceof ServiceError)) throw thrown;
    const { retrying, failed } = producer.report();
    const count = Math.min(which.most, retrying + failed);
    const failure = { shard_id, code: thrown.code, error: thrown.message };
    return { ...nothing, scanned: count, failed: count, failures: [failure] };
  }
}
