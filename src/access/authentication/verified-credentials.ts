import type { Clock } from '../../lib/clock.ts';
import type { Session } from '../access-state.ts';

/** A credential that was right. */
export interface Verified {
  readonly session: Session;
  /** Wall time at which the key expires; infinite where it does not. */
  readonly expiresMs: number;
  /** Monotonic time until which a password need not be hashed again; infinite for a key. */
  readonly untilMs: number;
}

/** All are forgotten where there are more, so that the number of one fits into a place. */
const entriesMax = 32_768;
const placesMin = 128;
/** Of all places, at most: a search soon meets a free one. */
const takenMax = 2 / 3;
/** A place has the number of an entry, from 1 on, below a part of its digest; 0 where it is free. */
const numberBits = 0xffff;
/** Words of an entry: the first 224 bits of a digest, then whether it has an end. */
const entryShift = 3;
const entryWords = 1 << entryShift;
const digestWords = entryWords - 1;

/**
 * Headers that were right, by their SHA-256; the headers themselves are not kept. Every request asks it, and with
 * thousands of keys a search costs what it misses in the caches of the processor. So the hash table, with linear
 * probing, is of small places, which stay in the caches, and an entry is one line of flat memory, no object of its own.
 * A digest is its own hash, and all bits that are kept of it are compared, in a time that does not depend on where they
 * differ.
 */
export class VerifiedCredentials {
  readonly #clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  readonly #wanted = new Int32Array(entryWords);
  readonly #wantedBytes = new Uint8Array(this.#wanted.buffer);
  #places = new Int32Array(placesMin);
  #entries = entriesFor(placesMin);
  #sessions: Session[] = [];
  /** Of each entry `expiresMs`, then `untilMs`. */
  #times: number[] = [];

  constructor(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Undefined for a credential whose time is over, too: it is checked again, and `add` puts it in the same place. */
  find(header: string): Session | undefined {
    const number = this.#numberAt(this.#placeOf(header));
    if (number === 0) return undefined;
    if (this.#entries[(number << entryShift) - 1] !== 0 && this.#isOver(number)) return undefined;
    return this.#sessions[number - 1];
  }

  /** In place of what was said of the header before. */
  add(header: string, { session, expiresMs, untilMs }: Verified): void {
    if (this.#sessions.length >= entriesMax) this.clear();
    if (this.#sessions.length + 1 > this.#places.length * takenMax) this.#grow();
    const place = this.#placeOf(header);
    let number = this.#numberAt(place);
    if (number === 0) {
      number = this.#sessions.length + 1;
      this.#places[place] = this.#tag() | number;
    }
    const hasEnd = Math.min(expiresMs, untilMs) !== Number.POSITIVE_INFINITY;
    this.#entries.set(this.#wanted, (number - 1) << entryShift);
    this.#entries[(number << entryShift) - 1] = hasEnd ? 1 : 0;
    this.#sessions[number - 1] = session;
    this.#times[number * 2 - 2] = expiresMs;
    this.#times[number * 2 - 1] = untilMs;
  }

  clear(): void {
    if (this.#sessions.length === 0) return;
    this.#places.fill(0);
    this.#entries.fill(0);
    this.#sessions = [];
    this.#times = [];
  }

  #isOver(number: number): boolean {
    const expiresMs = this.#times[number * 2 - 2] ?? 0;
    const untilMs = this.#times[number * 2 - 1] ?? 0;
    if (expiresMs !== Number.POSITIVE_INFINITY && this.#clock.nowMs() >= expiresMs) return true;
    return untilMs !== Number.POSITIVE_INFINITY && this.#clock.monotonicMs() >= untilMs;
  }

  #numberAt(place: number): number {
    return (this.#places[place] ?? 0) & numberBits;
  }

  /** Of the digest's last word, which an entry does not have. */
  #tag(): number {
    return (this.#wanted[digestWords] ?? 0) & ~numberBits;
  }

  /** The place of the header, or the free one where it would be. */
  #placeOf(header: string): number {
    Bun.SHA256.hash(header, this.#wantedBytes);
    const places = this.#places;
    const mask = places.length - 1;
    const tag = this.#tag();
    let place = (this.#wanted[0] ?? 0) & mask;
    for (;;) {
      const found = places[place] ?? 0;
      if (found === 0 || ((found & ~numberBits) === tag && this.#isWanted(found & numberBits))) return place;
      place = (place + 1) & mask;
    }
  }

  #isWanted(number: number): boolean {
    const entries = this.#entries;
    const wanted = this.#wanted;
    const from = (number - 1) << entryShift;
    let difference = 0;
    for (let at = 0; at < digestWords; at += 1) difference |= (entries[from + at] ?? 0) ^ (wanted[at] ?? 0);
    return difference === 0;
  }

  #grow(): void {
    const before = this.#places;
    const entries = entriesFor(before.length * 2);
    entries.set(this.#entries);
    const places = new Int32Array(before.length * 2);
    const mask = places.length - 1;
    for (const taken of before) {
      if (taken === 0) continue;
      let place = (entries[((taken & numberBits) - 1) << entryShift] ?? 0) & mask;
      while (places[place] !== 0) place = (place + 1) & mask;
      places[place] = taken;
    }
    this.#places = places;
    this.#entries = entries;
  }
}

function entriesFor(places: number): Int32Array<ArrayBuffer> {
  return new Int32Array(Math.ceil(places * takenMax) * entryWords);
}
