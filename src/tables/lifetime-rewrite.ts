import { limits } from '../config/limits.ts';
import type { IndexedRange } from '../indexing/indexed-range.ts';
import { FrameBuilder, rowKind } from '../lib/document-frame.ts';
import type { RangeLog } from '../replication/range-log.ts';

const noOperations = new TextEncoder().encode('{"operations":[],"upsert":false}');

/**
 * Writes every document of a range again, unchanged, so that the writer reads the base of its lifetime from
 * `ttlField`. Documents get new versions; what is written meanwhile is read from the new field anyway.
 */
export async function rewriteLifetimes(
  range: IndexedRange,
  ttlField: string,
  log: RangeLog,
  nowMs: () => number,
): Promise<void> {
  let afterKey = '';
  for (;;) {
    const page = range.stored.documents.page(
      { fromKey: afterKey, fromInclusive: false, toKey: null, toInclusive: true },
      limits.scanPageRowsMax,
      limits.scanPageBytesMax,
    );
    if (page.lastKey === undefined) return;
    const frame = new FrameBuilder();
    for (const document of page.documents) frame.append(rowKind.transform, document.key, noOperations);
    const timeMs = nowMs();
    await log.append({
      writes: [{ rangeId: range.rangeId, frame: frame.finish(), ttlField }],
      requestId: 'lifetime-rewrite',
      timeMs,
      timestamp: new Date(timeMs).toISOString(),
    });
    if (!page.more) return;
    afterKey = page.lastKey;
  }
}
