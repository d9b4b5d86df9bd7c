import { type DocumentFrame, readFrame, rowKind } from '../../lib/document-frame.ts';
import type { RangeWrite } from '../write-request.ts';
import type { EvaluationContext } from './evaluation-context.ts';
import { ttlBaseOfBody } from './transform-document.ts';

/**
 * The rows of a write. The TTL field of the range may have changed while the write was on its way: the TTL bases of its
 * documents are read again then, because the job that reads those of stored documents may have passed already.
 */
export function frameOf(
  { ttlField }: Pick<RangeWrite, 'ttlField'>,
  bytes: Uint8Array<ArrayBuffer>,
  context: EvaluationContext,
): DocumentFrame {
  const frame = readFrame(bytes);
  if (ttlField === undefined || context.ttlField === undefined || ttlField === context.ttlField) return frame;
  for (let row = 0; row < frame.rowCount; row += 1) {
    if (frame.kind(row) === rowKind.put) {
      frame.setTtlBaseMs(row, ttlBaseOfBody(frame.body(row), frame.writtenMs(row), context));
    }
  }
  return frame;
}
