import { FrameBuilder, readFrame } from '../../lib/document-frame.ts';
import type { ChangePage } from '../range-index.ts';

/** A page that is worth a native call of its own, in bytes. */
export const smallPageBytes = 64 * 1024;
/** Small pages are gathered up to this many bytes. */
const gatheredBytesMax = 256 * 1024;

/**
 * Takes the next page off a queue, joined with the small pages behind it: under many small writes a native call for
 * each would cost more than the rows in it. A page with damaged rows stays alone, since a page behind it may mend them.
 */
export function takePages(queue: ChangePage[]): { page: ChangePage; takenBytes: number } | undefined {
  const [first] = queue;
  if (!first) return undefined;
  let count = 0;
  let bytes = 0;
  for (const page of queue) {
    bytes += page.frame.byteLength;
    if (page.frame.byteLength > smallPageBytes || bytes > gatheredBytesMax || page.damaged?.length) break;
    count += 1;
  }
  const joined = queue.splice(0, Math.max(1, count));
  const takenBytes = joined.reduce((total, page) => total + page.frame.byteLength, 0);
  if (joined.length === 1) return { page: first, takenBytes };
  const builder = new FrameBuilder(count * 2, takenBytes);
  for (const page of joined) {
    const frame = readFrame(page.frame);
    for (let row = 0; row < frame.rowCount; row += 1) builder.appendRow(frame, row);
  }
  const last = joined[joined.length - 1] ?? first;
  const page = { firstSequence: first.firstSequence, lastSequence: last.lastSequence, frame: builder.finish() };
  return { page, takenBytes };
}
