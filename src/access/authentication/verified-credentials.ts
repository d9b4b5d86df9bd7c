import type { Session } from '../access-state.ts';

/** A credential that was right. */
export interface Verified {
  readonly session: Session;
  /** Wall time at which the key expires. */
  readonly expiresMs: number | undefined;
  /** Monotonic time until which a password need not be hashed again. */
  readonly untilMs: number | undefined;
}

interface Entry {
  /** SHA-256 of the header. */
  readonly digest: Uint32Array;
  readonly verified: Verified;
}

const entriesMax = 32_768;
const digestBytes = 32;

/**
 * Headers that were right, by their SHA-256; the headers themselves are not kept. It is asked by every request, so the digest goes
 * into the same bytes each time, and 53 bits of it, which a double holds, name an entry. All 256 are compared, in a time that
 * does not depend on where they differ.
 */
export class VerifiedCredentials {
  readonly #entries = new Map<number, Entry>();
  readonly #bytes = new Uint8Array(digestBytes);
  readonly #digest = new Uint32Array(this.#bytes.buffer);

  find(header: string): Verified | undefined {
    const entry = this.#entries.get(this.#nameOf(header));
    return entry !== undefined && isEqual(entry.digest, this.#digest) ? entry.verified : undefined;
  }

  /** In place of what was said of the header before. All are forgotten where there are too many. */
  add(header: string, verified: Verified): void {
    if (this.#entries.size >= entriesMax) this.#entries.clear();
    this.#entries.set(this.#nameOf(header), { digest: this.#digest.slice(), verified });
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Leaves the digest of the header in `#digest`. */
  #nameOf(header: string): number {
    Bun.SHA256.hash(header, this.#bytes);
    const high = this.#digest[0] ?? 0;
    const low = this.#digest[1] ?? 0;
    return high * 2 ** 21 + (low >>> 11);
  }
}

function isEqual(left: Uint32Array, right: Uint32Array): boolean {
  let difference = 0;
  for (let at = 0; at < left.length; at += 1) difference |= (left[at] ?? 0) ^ (right[at] ?? 0);
  return difference === 0;
}
