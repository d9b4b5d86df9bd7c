import type { RemovedTargets } from '../../lib/parts/edge-notes.ts';
import { partIdOfBody } from '../../lib/parts/part-body.ts';

/** A document with everything that belongs to it, as a line of an archive has it. */
export interface ArchivedDocument {
  /** Number of the document in its range, the same on every line that concerns it. */
  ordinal: number;
  key: string;
  version: number;
  /** Milliseconds since 1970; 0 for none. */
  ttlBaseMs: number;
  /** Milliseconds since 1970; 0 where the body says so itself. */
  writtenMs: number;
  /** UTF-8 JSON object. */
  body: Uint8Array;
  /** Bodies of parts (`lib/parts/part-body.ts`), by part id. */
  parts: readonly Uint8Array[];
}

/** Of the numbers from `from` to `to`, only these are there still: of documents, or of documents that have a part. */
export interface LiveOrdinals {
  part: number | undefined;
  from: number;
  to: number;
  ordinals: readonly number[];
}

/** Bytes of a line: those of a document, of its parts in base64, and of what stands between them. */
export const lineBytesMax = 512 * 1_024 * 1_024;
/** Key, numbers, and names of parts. */
const membersBytesMax = 64 * 1_024;

const encoder = new TextEncoder();

/**
 * Everything of a document's line that stands before the document, which is the
 * last member: it is copied as it is and never parsed.
 */
export function documentHead(document: Omit<ArchivedDocument, 'body'>): string {
  const { ordinal, key, version, ttlBaseMs, writtenMs, parts } = document;
  let head = `{"id":${ordinal},"key":${JSON.stringify(key)},"version":${version}`;
  if (ttlBaseMs) head += `,"ttl_base":${ttlBaseMs}`;
  if (writtenMs) head += `,"written":${writtenMs}`;
  // Pieces are appended rather than joined: the head of each document is made on the thread that packs.
  let separator = ',"parts":{';
  for (const part of parts) {
    head += `${separator}"${partIdOfBody(part)}":"${part.toBase64()}"`;
    separator = ',';
  }
  return `${head}${parts.length === 0 ? '' : '}'},"document":`;
}

/** Whether a document has more than a line may have. */
export function isTooLong({ body, parts }: Pick<ArchivedDocument, 'body' | 'parts'>): boolean {
  let bytes = body.byteLength + membersBytesMax;
  for (const part of parts) bytes += Math.ceil(part.byteLength / 3) * 4;
  return bytes > lineBytesMax;
}

/** The rest of the line behind the document. */
export const documentEnd = encoder.encode('}\n');

export function deletedLine(ordinal: number): string {
  return `{"id":${ordinal},"deleted":true}\n`;
}

export function liveLine({ part, from, to, ordinals }: LiveOrdinals): string {
  return `${JSON.stringify({ ...(part === undefined ? {} : { part }), from, to, live: ordinals })}\n`;
}

/** Documents that were deleted, and to which lists of edges of any range may still lead. */
export function removedLine(note: string, removed: RemovedTargets): string {
  return `${JSON.stringify({ note, removed })}\n`;
}
