import { limits } from '../config/limits.ts';
import { FrameBuilder, rowKind } from '../lib/document-frame.ts';

export interface FramedDocument {
  key: string;
  /** Its TTL base in milliseconds; undefined when it has none. */
  ttlBaseMs: number | undefined;
  /** When it was written, in milliseconds; undefined where the body says so itself. */
  writtenMs: number | undefined;
  /** UTF-8 JSON object. */
  body: Uint8Array;
}

/** Stored documents as frames of bounded size, in order: what the native filter evaluates at a time. */
export function* framesOf(documents: Iterable<FramedDocument>): Generator<Uint8Array<ArrayBuffer>> {
  let builder = new FrameBuilder();
  for (const document of documents) {
    append(builder, document);
    if (builder.rowCount < limits.scanPageRowsMax && builder.byteLength < limits.scanPageBytesMax) continue;
    yield builder.finish();
    builder = new FrameBuilder();
  }
  if (builder.rowCount > 0) yield builder.finish();
}

/** The same as one frame. */
export function frameOf(documents: Iterable<FramedDocument>): Uint8Array<ArrayBuffer> {
  const builder = new FrameBuilder();
  for (const document of documents) append(builder, document);
  return builder.finish();
}

function append(builder: FrameBuilder, { key, ttlBaseMs, writtenMs, body }: FramedDocument): void {
  const row = builder.append(rowKind.put, key, body);
  builder.setOrdinal(row, row);
  builder.setTtlBaseMs(row, ttlBaseMs ?? 0);
  builder.setWrittenMs(row, writtenMs ?? 0);
}
