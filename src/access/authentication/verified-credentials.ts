import type { Held } from '../access-state.ts';

/** A credential that was right. */
export interface Verified {
  readonly held: Held;
  /** Undefined for a password. */
  readonly keyId: string | undefined;
  /** Wall time at which the key expires; infinite where it does not. */
  readonly expiresMs: number;
  /** Monotonic time until which a password need not be hashed again; infinite for a key. */
  readonly untilMs: number;
}

/** All are forgotten where there are more; the table has a third more places at least, so that a search soon meets a free one. */
const entriesMax = 32_768;
const placesMin = 64;
/** Words of a place: 224 bits of a digest, then the number of its entry, from 1 on; 0 where it is free. */
const placeShift = 3;
const placeWords = 1 << placeShift;
const digestWords = placeWords - 1;

/**
 * Headers that were right, by their SHA-256; the headers themselves are not kept. Every request asks it, so it is a hash table
 * with linear probing over flat memory: a digest is its own hash, and all bits that are kept of it are compared, in a time that
 * does not depend on where they differ. With thousands of keys a search costs what it misses in the caches of the processor, so
 * that nothing of an entry is an object of its own.
 */
export class VerifiedCredentials {
  readonly #wanted = new Uint32Array(placeWords);
  readonly #wantedBytes = new Uint8Array(this.#wanted.buffer);
  #places = new Uint32Array(placesMin * placeWords);
  #helds: Held[] = [];
  #keyIds: (string | undefined)[] = [];
  /** Of each entry `expiresMs`, then `untilMs`. */
  #times: number[] = [];

  find(header: string): Verified | undefined {
    const number = this.#places[this.#placeOf(header) + digestWords] ?? 0;
    const at = number - 1;
    const held = number === 0 ? undefined : this.#helds[at];
    if (held === undefined) return undefined;
    return {
      held,
      keyId: this.#keyIds[at],
      expiresMs: this.#times[at * 2] ?? 0,
      untilMs: this.#times[at * 2 + 1] ?? 0,
    };
  }

  /** In place of what was said of the header before. */
  add(header: string, { held, keyId, expiresMs, untilMs }: Verified): void {
    if (this.#helds.length >= entriesMax) this.clear();
    if (this.#helds.length * placeWords * 4 >= this.#places.length * 3) this.#grow();
    const place = this.#placeOf(header);
    const known = this.#places[place + digestWords] ?? 0;
    const number = known === 0 ? this.#helds.length + 1 : known;
    this.#put(place, this.#wanted, number);
    this.#helds[number - 1] = held;
    this.#keyIds[number - 1] = keyId;
    this.#times[number * 2 - 2] = expiresMs;
    this.#times[number * 2 - 1] = untilMs;
  }

  clear(): void {
    if (this.#helds.length === 0) return;
    this.#places.fill(0);
    this.#helds = [];
    this.#keyIds = [];
    this.#times = [];
  }

  /** The first word of the place where the header is, or of the free one where it would be. */
  #placeOf(header: string): number {
    Bun.SHA256.hash(header, this.#wantedBytes);
    return this.#probe(this.#wanted);
  }

  #probe(digest: Uint32Array): number {
    const places = this.#places;
    const mask = places.length - 1;
    let place = ((digest[0] ?? 0) << placeShift) & mask;
    while (places[place + digestWords] !== 0 && !this.#isAt(place, digest)) place = (place + placeWords) & mask;
    return place;
  }

  #isAt(place: number, digest: Uint32Array): boolean {
    const places = this.#places;
    let difference = 0;
    for (let at = 0; at < digestWords; at += 1) difference |= (places[place + at] ?? 0) ^ (digest[at] ?? 0);
    return difference === 0;
  }

  #put(place: number, digest: Uint32Array, number: number): void {
    for (let at = 0; at < digestWords; at += 1) this.#places[place + at] = digest[at] ?? 0;
    this.#places[place + digestWords] = number;
  }

  #grow(): void {
    const before = this.#places;
    this.#places = new Uint32Array(before.length * 2);
    for (let from = 0; from < before.length; from += placeWords) {
      const number = before[from + digestWords] ?? 0;
      if (number === 0) continue;
      const digest = before.subarray(from, from + digestWords);
      this.#put(this.#probe(digest), digest, number);
    }
  }
}
