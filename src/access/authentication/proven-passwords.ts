import type { Clock } from '../../lib/clock.ts';

/** The password of a header was right. */
interface Proof {
  /** The stored hash that its password was compared with. */
  readonly passwordHash: string;
  /** Monotonic time until which it need not be compared again. */
  readonly untilMs: number;
}

const provenMs = 60_000;
/** Proofs that are kept; the oldest is forgotten first. */
const proofsMax = 8_192;

/**
 * Headers whose password was right, by their SHA-256, for a minute: a password is as right as before when grants, keys or row
 * filters change, so that nobody can have all passwords hashed again by changing something.
 */
export class ProvenPasswords {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #proofs = new Map<string, Proof>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Until when the password of the header is right for the stored hash; undefined where that has to be found out. */
  untilMs(header: string, passwordHash: string): number | undefined {
    const proof = this.#proofs.get(digestOf(header));
    const holds = proof?.passwordHash === passwordHash && this.#clock.monotonicMs() < proof.untilMs;
    return holds ? proof.untilMs : undefined;
  }

  /** Returns until when it holds. */
  add(header: string, passwordHash: string): number {
    const untilMs = this.#clock.monotonicMs() + provenMs;
    const digest = digestOf(header);
    this.#proofs.delete(digest);
    this.#proofs.set(digest, { passwordHash, untilMs });
    if (this.#proofs.size > proofsMax) {
      for (const oldest of this.#proofs.keys()) {
        this.#proofs.delete(oldest);
        break;
      }
    }
    return untilMs;
  }
}

function digestOf(header: string): string {
  return Bun.SHA256.hash(header, 'base64');
}
