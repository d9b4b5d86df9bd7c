import { limits } from '../config/limits.ts';
import { FrameBuilder, rowKind } from '../lib/document-frame.ts';

export interface FramedDocument {
  key: string;
  /** Base of its lifetime in milliseconds; undefined when it has none. */
  ttlBaseMs: number | undefined;
  /** UTF-8 JSON object. */
  body: Uint8Array;
}

/** Stored documents as frames of bounded size, in order: what the native filter evaluates at a time. */
export function* framesOf(documents: Iterable<FramedDocument>): Generator<Uint8Array<ArrayBuffer>> {
  let builder = new FrameBuilder();
  for (const document of documents) {
    const row = builder.append(rowKind.put, document.key, document.body);
    builder.setOrdinal(row, row);
    builder.setTtlBaseMs(row, document.ttlBaseMs ?? 0);
    if (builder.rowCount < limits.scanPageRowsMax && builder.byteLength < limits.scanPageBytesMax) continue;
    yield builder.finish();
    builder = new FrameBuilder();
  }
  if (builder.rowCount > 0) yield builder.finish();
}
