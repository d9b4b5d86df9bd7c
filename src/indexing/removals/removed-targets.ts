import { readFrame, rowKind } from '../../lib/document-frame.ts';
import { type RemovedTargets, readRemovedTargets, removedTargetsPrefix } from '../../lib/parts/edge-notes.ts';
import type { NoteStore } from '../../storage/reader/note-store.ts';

const pageNotes = 1_000;
const decoder = new TextDecoder();

/** The notes of one range on deleted documents that edges may still lead to, as they are now. */
export class RangeRemovedTargets {
  readonly #notes: () => NoteStore;
  /** By the key of the note; undefined until somebody asks. */
  #removed: Map<string, RemovedTargets> | undefined;

  constructor(notes: () => NoteStore) {
    this.#notes = notes;
  }

  /** Takes over what an entry of the range has noted. */
  take(images: Uint8Array<ArrayBuffer>): void {
    // A later read returns the state of the file at that time.
    if (!this.#removed) return;
    const frame = readFrame(images);
    // Notes stand at the end.
    for (let row = frame.rowCount - 1; row >= 0 && frame.kind(row) === rowKind.state; row -= 1) {
      const key = decoder.decode(frame.keyBytes(row));
      if (!key.startsWith(removedTargetsPrefix)) continue;
      const value = frame.body(row);
      if (value.byteLength === 0) this.#removed.delete(key);
      else this.#removed.set(key, readRemovedTargets(value));
    }
  }

  all(): ReadonlyMap<string, RemovedTargets> {
    this.#removed ??= this.#load();
    return this.#removed;
  }

  #load(): Map<string, RemovedTargets> {
    const removed = new Map<string, RemovedTargets>();
    for (let after = ''; ; ) {
      const page = this.#notes().within(removedTargetsPrefix, pageNotes, after);
      for (const { key, value } of page) removed.set(key, readRemovedTargets(value));
      const last = page.at(-1);
      if (page.length < pageNotes || !last) return removed;
      after = last.key;
    }
  }
}
