import { limits } from '../../config/limits.ts';
import type { RetriedDocuments } from '../../indexing/enrichment/part-producer.ts';
import { backoffMs } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { failureKey, failurePrefix, ordinalOfFailure } from '../../lib/parts/part-notes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RangeReader } from '../../storage/reader/range-reader.ts';
import { type FailureNote, noteBytes, readFailure } from './part-notes.ts';

/** Pauses before a document is tried again, in milliseconds. */
const retries = { firstMs: 2_000, maxMs: 5 * 60_000 };
const pageRows = 256;
/** Sequences of failed documents that are remembered for writers that wait. */
const recentMax = 1_024;

/** A change of a note, to be written with the parts of its batch; an empty value removes it. */
export interface NoteChange {
  readonly key: string;
  readonly value: Uint8Array;
  /** Takes the change over when it is committed. */
  commit(): void;
}

const nothing = new Uint8Array(0);
const damagedSource = new ServiceError(
  'data_corrupted',
  'the document, or an artifact of it, does not match its checksum; write the document again',
);

/** The documents of one definition whose parts could not be made, as the notes of the range have them. */
export class Failures {
  readonly #stored: RangeReader;
  readonly #partId: number;
  readonly #clock: Clock;
  readonly #recent: number[] = [];
  #retrying = 0;
  #failed = 0;
  #damaged = 0;
  /** Monotonic time at which the first document is to be tried again; undefined for never. */
  #nextMs: number | undefined;

  /** Reads the notes of earlier processes. Times that a jump of the clock has moved far ahead come sooner. */
  constructor(stored: RangeReader, partId: number, clock: Clock) {
    this.#stored = stored;
    this.#partId = partId;
    this.#clock = clock;
    for (const { note } of this.#all()) {
      this.#count(note, 1);
      this.#wait(note);
    }
  }

  get retrying(): number {
    return this.#retrying;
  }

  get failed(): number {
    return this.#failed;
  }

  /** Of them all, those whose source is damaged. */
  get damaged(): number {
    return this.#damaged;
  }

  /** Monotonic time, so that a jump of the wall clock does not hold the documents back; undefined for never. */
  get retryAtMs(): number | undefined {
    return this.#retrying === 0 ? undefined : this.#nextMs;
  }

  /** Of the documents that failed last, those with these sequences. */
  within(firstSequence: number, lastSequence: number): number {
    return this.#recent.filter((sequence) => sequence >= firstSequence && sequence <= lastSequence).length;
  }

  /** Ordinals that are to be tried again now, at most `most`; what their documents were then is in the notes. */
  due(most: number): { ordinal: number; note: FailureNote }[] {
    const nowMs = this.#clock.nowMs();
    const due: { ordinal: number; note: FailureNote }[] = [];
    this.#nextMs = undefined;
    for (const each of this.#all()) {
      const { nextMs } = each.note;
      const isDue = nextMs !== null && (nextMs <= nowMs || nextMs > nowMs + retries.maxMs);
      if (isDue && due.length < most) due.push(each);
      // Of those that are due as well: the attempt may end without a word on them, as when the embedder is down.
      this.#wait(each.note);
    }
    return due;
  }

  /** The note about a document; undefined when it has not failed. */
  of(ordinal: number): FailureNote | undefined {
    return this.#note(ordinal);
  }

  /** Has failed documents tried again at once, as if for the first time; `nextKey` is that of the first one that is left. */
  reset({ most, only, from }: RetriedDocuments): { changes: NoteChange[]; nextKey: string | undefined } {
    const nowMs = this.#clock.nowMs();
    const changes: NoteChange[] = [];
    for (const each of this.#all(only ?? from)) {
      if (only !== undefined && each.ordinal !== only) break;
      if (changes.length >= most) {
        const nextKey = this.#keyOf(each.ordinal);
        if (nextKey !== undefined) return { changes, nextKey };
        continue;
      }
      const note: FailureNote = { ...each.note, attempts: 0, nextMs: nowMs };
      const commit = () => {
        this.#count(each.note, -1);
        this.#count(note, 1);
        this.#wait(note);
      };
      changes.push({ key: failureKey(this.#partId, each.ordinal), value: noteBytes(note), commit });
    }
    return { changes, nextKey: undefined };
  }

  /** Undefined where the document is gone, or cannot be read. */
  #keyOf(ordinal: number): string | undefined {
    return this.#stored.documents.byOrdinals([ordinal]).documents[0]?.key;
  }

  /** The document of `ordinal` needs no note any more; undefined when it has none. */
  clear(ordinal: number): NoteChange | undefined {
    const held = this.#note(ordinal);
    if (!held) return undefined;
    return { key: failureKey(this.#partId, ordinal), value: nothing, commit: () => this.#count(held, -1) };
  }

  /** The document, or the artifact that its part would be made from, is damaged. */
  addDamaged({ ordinal, sequence }: { ordinal: number; sequence: number }): NoteChange {
    return this.add(ordinal, sequence, { error: damagedSource, isFinal: true });
  }

  /** A document of this sequence has failed, once more if it has failed as it is now. */
  add(ordinal: number, sequence: number, how: { error: ServiceError; isFinal: boolean }): NoteChange {
    const { error, isFinal } = how;
    const held = this.#note(ordinal);
    const attempts = held?.sequence === sequence ? held.attempts + 1 : 1;
    const isOver = isFinal || attempts >= limits.enrichmentAttemptsMax;
    const nextMs = isOver ? null : this.#clock.nowMs() + backoffMs(attempts, retries);
    const note: FailureNote = { attempts, nextMs, code: error.code, reason: error.message.slice(0, 512), sequence };
    return {
      key: failureKey(this.#partId, ordinal),
      value: noteBytes(note),
      commit: () => {
        if (held) this.#count(held, -1);
        this.#count(note, 1);
        this.#wait(note);
        this.#recent.push(sequence);
        if (this.#recent.length > recentMax) this.#recent.shift();
      },
    };
  }

  #note(ordinal: number): FailureNote | undefined {
    const value = this.#stored.notes.get(failureKey(this.#partId, ordinal));
    return value && readFailure(value);
  }

  /** In the order of their keys, from that of `from` on. */
  *#all(from?: number): Generator<{ ordinal: number; note: FailureNote }> {
    const first = from === undefined ? undefined : this.#note(from);
    if (from !== undefined && first) yield { ordinal: from, note: first };
    for (let after = from === undefined ? '' : failureKey(this.#partId, from); ; ) {
      const page = this.#stored.notes.within(failurePrefix(this.#partId), pageRows, after);
      for (const { key, value } of page) yield { ordinal: ordinalOfFailure(key), note: readFailure(value) };
      const last = page.at(-1);
      if (!last || page.length < pageRows) return;
      after = last.key;
    }
  }

  #count({ nextMs, code }: FailureNote, by: 1 | -1): void {
    if (code === damagedSource.code) this.#damaged += by;
    if (nextMs === null) this.#failed += by;
    else this.#retrying += by;
  }

  #wait({ nextMs }: FailureNote): void {
    if (nextMs === null) return;
    const soonest = this.#clock.monotonicMs() + Math.min(nextMs - this.#clock.nowMs(), retries.maxMs);
    this.#nextMs = Math.min(this.#nextMs ?? soonest, soonest);
  }
}
