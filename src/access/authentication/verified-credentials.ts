import type { Session } from '../access-state.ts';

/** A credential that was right. */
export interface Verified {
  readonly session: Session;
  /** Wall time at which the key expires. */
  readonly expiresMs: number | undefined;
  /** Monotonic time until which a password need not be hashed again. */
  readonly untilMs: number | undefined;
}

/** All are forgotten where there are more; the table has twice as many places, so that a search soon meets a free one. */
const entriesMax = 32_768;
const placesMax = entriesMax * 2;
const placesMin = 64;
const digestWords = 8;

/**
 * Headers that were right, by their SHA-256; the headers themselves are not kept. Every request asks it, so it is a hash table
 * with linear probing over flat memory: a digest is its own hash, and all of its 256 bits are compared, in a time that does not
 * depend on where they differ.
 */
export class VerifiedCredentials {
  readonly #wanted = new Uint32Array(digestWords);
  readonly #wantedBytes = new Uint8Array(this.#wanted.buffer);
  #digests = new Uint32Array(placesMin * digestWords);
  #entries: (Verified | undefined)[] = emptyPlaces(placesMin);
  #count = 0;

  find(header: string): Verified | undefined {
    return this.#entries[this.#placeOf(header)];
  }

  /** In place of what was said of the header before. */
  add(header: string, verified: Verified): void {
    if (this.#count >= entriesMax) this.clear();
    if (this.#count * 2 >= this.#entries.length) this.#grow();
    const place = this.#placeOf(header);
    if (this.#entries[place] === undefined) this.#count += 1;
    this.#entries[place] = verified;
    this.#digests.set(this.#wanted, place * digestWords);
  }

  clear(): void {
    if (this.#count === 0) return;
    this.#entries.fill(undefined);
    this.#count = 0;
  }

  /** Where the header is, or the free place where it would be. */
  #placeOf(header: string): number {
    Bun.SHA256.hash(header, this.#wantedBytes);
    return this.#probe(this.#wanted);
  }

  #probe(digest: Uint32Array): number {
    const mask = this.#entries.length - 1;
    let place = (digest[0] ?? 0) & mask;
    while (this.#entries[place] !== undefined && !this.#isAt(place, digest)) place = (place + 1) & mask;
    return place;
  }

  #isAt(place: number, digest: Uint32Array): boolean {
    const from = place * digestWords;
    let difference = 0;
    for (let at = 0; at < digestWords; at += 1) difference |= (this.#digests[from + at] ?? 0) ^ (digest[at] ?? 0);
    return difference === 0;
  }

  #grow(): void {
    const [digests, entries] = [this.#digests, this.#entries];
    const places = Math.min(entries.length * 2, placesMax);
    this.#digests = new Uint32Array(places * digestWords);
    this.#entries = emptyPlaces(places);
    for (const [from, entry] of entries.entries()) {
      if (entry === undefined) continue;
      const digest = digests.subarray(from * digestWords, (from + 1) * digestWords);
      const place = this.#probe(digest);
      this.#entries[place] = entry;
      this.#digests.set(digest, place * digestWords);
    }
  }
}

function emptyPlaces(count: number): (Verified | undefined)[] {
  return new Array<Verified | undefined>(count).fill(undefined);
}
