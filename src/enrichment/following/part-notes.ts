import { cursorKey } from '../../lib/parts/part-notes.ts';
import type { NoteStore } from '../../storage/reader/note-store.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * How far the parts of one definition are made in a range. Creation notes the head: the backfill runs up to it, and what
 * is written after it is live. Sequences are those of the range.
 */
export interface Cursor {
  /** The fingerprint of what the parts depend on: with another one, everything is looked at again. */
  fingerprint: string;
  /** Documents up to here, after `backfillUntil`, have been looked at. */
  liveAfter: number;
  backfillAfter: number;
  backfillUntil: number;
  /** Every document has its part, and later ones are written with it: nothing is followed any more. */
  isEnded?: boolean;
}

/** A document whose part could not be made. */
export interface FailureNote {
  attempts: number;
  /** Wall time of the next attempt, milliseconds since 1970; null when there is none. */
  nextMs: number | null;
  code: string;
  reason: string;
  /** Of the document as it was then. */
  sequence: number;
}

export function noteBytes(note: Cursor | FailureNote): Uint8Array {
  return encoder.encode(JSON.stringify(note));
}

export function readFailure(value: Uint8Array): FailureNote {
  return JSON.parse(decoder.decode(value)) as FailureNote;
}

/** The cursor as it was noted; that of a new definition otherwise. `firstSequence` is that of the range. */
export function openCursor(
  notes: NoteStore,
  partId: number,
  fingerprint: string,
  { head, firstSequence }: { head: number; firstSequence: number },
): Cursor {
  const value = notes.get(cursorKey(partId));
  const noted = value && (JSON.parse(decoder.decode(value)) as Cursor);
  if (noted?.fingerprint === fingerprint && noted.liveAfter <= head) return noted;
  return { fingerprint, liveAfter: head, backfillAfter: firstSequence - 1, backfillUntil: head };
}
