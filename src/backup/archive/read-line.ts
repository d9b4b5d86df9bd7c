import { scanJson } from '../../engine/json-scan.ts';
import { type RemovedTargets, removedTargetsPrefix } from '../../lib/parts/edge-notes.ts';
import { partIdOfBody } from '../../lib/parts/part-body.ts';
import { isWholePart } from '../../lib/parts/part-check.ts';
import { base64Bytes } from '../../lib/text/base64.ts';
import { checkDocumentKey } from '../../protocol/document-key.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ArchivedDocument, LiveOrdinals } from './archive-line.ts';

type ArchiveLine =
  | { kind: 'document'; document: ArchivedDocument }
  | { kind: 'deleted'; ordinal: number }
  | { kind: 'live'; live: LiveOrdinals }
  | { kind: 'removed'; note: string; removed: RemovedTargets };

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const bodyMark = encoder.encode(',"document":');
const ordinalMax = 0xffff_ffff;

/** Reads a line, without its line break; ids of parts go up to `lastPartId`. Throws `backup_corrupted`. */
export function readLine(line: Buffer, lastPartId: number): ArchiveLine {
  try {
    const mark = line.indexOf(bodyMark);
    if (mark === -1) return readOther(JSON.parse(decoder.decode(line)));
    const head: unknown = JSON.parse(`${decoder.decode(line.subarray(0, mark))}}`);
    const body = line.subarray(mark + bodyMark.byteLength, line.byteLength - 1);
    if (line.at(-1) !== 0x7d || body[0] !== 0x7b) throw wrong();
    scanJson(body);
    return { kind: 'document', document: readDocument(head, body, lastPartId) };
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'backup_corrupted') throw error;
    if (error instanceof ServiceError || error instanceof SyntaxError || error instanceof TypeError) throw wrong();
    throw error;
  }
}

function readDocument(head: unknown, body: Uint8Array, lastPartId: number): ArchivedDocument {
  const { id, key, version, ttl_base = 0, written = 0, parts = {} } = head as Record<string, unknown>;
  if (typeof key !== 'string' || typeof parts !== 'object' || parts === null) throw wrong();
  checkDocumentKey(key);
  const bodies = Object.entries(parts).map(([partId, text]) => readPart(partId, text, lastPartId));
  return {
    ordinal: ordinalOf(id),
    key,
    version: whole(version),
    ttlBaseMs: whole(ttl_base),
    writtenMs: whole(written),
    body,
    parts: bodies,
  };
}

function readPart(partId: string, text: unknown, lastPartId: number): Uint8Array {
  if (typeof text !== 'string') throw wrong();
  // Characters that are none of base64 are skipped, so the result is too short.
  const body = Buffer.from(text, 'base64');
  if (body.byteLength !== base64Bytes(text)) throw wrong();
  const id = body.byteLength >= 8 ? partIdOfBody(body) : undefined;
  const isKnown = id !== undefined && String(id) === partId && id >= 1 && id <= lastPartId;
  if (!isKnown || !isWholePart(body)) throw wrong();
  return body;
}

function readOther(value: unknown): ArchiveLine {
  const { id, deleted, part, from, to, live, note, removed } = value as Record<string, unknown>;
  if (deleted === true) return { kind: 'deleted', ordinal: ordinalOf(id) };
  if (typeof note === 'string' && note.startsWith(removedTargetsPrefix)) {
    return { kind: 'removed', note, removed: readRemoved(removed) };
  }
  if (!Array.isArray(live)) throw wrong();
  const ordinals = live.map(ordinalOf);
  return {
    kind: 'live',
    live: { part: part === undefined ? undefined : whole(part), from: whole(from), to: whole(to), ordinals },
  };
}

function readRemoved(value: unknown): RemovedTargets {
  const { through, keys } = value as Record<string, unknown>;
  if (!Array.isArray(through) || !Array.isArray(keys)) throw wrong();
  return { through: through.map(whole), keys: keys.map((key) => checkDocumentKey(typeof key === 'string' ? key : '')) };
}

function ordinalOf(value: unknown): number {
  const ordinal = whole(value);
  if (ordinal < 1 || ordinal > ordinalMax) throw wrong();
  return ordinal;
}

function whole(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw wrong();
}

function wrong(): ServiceError {
  return new ServiceError('backup_corrupted', 'a line of the backup is not what a backup has');
}
