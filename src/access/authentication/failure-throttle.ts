import ipaddr from 'ipaddr.js';
import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** How many wrong credentials a client may give at once, and after how long it may give one more. */
const failuresMax = 20;
const refillMs = 3_000;
/** Clients that are remembered; the one that failed longest ago is forgotten first. */
const clientsMax = 8_192;
/** Parts of 16 bits that name a network of IPv6. */
const networkParts = 4;

interface Bucket {
  failures: number;
  lastMs: number;
}

/**
 * Bounds how often one client may give a wrong credential: a leaky bucket for each address. A client that is over its
 * bound is refused before any password is hashed; a credential that is right and needs no hash always passes, so that
 * clients behind one proxy do not shut each other out.
 */
export class FailureThrottle {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Throws `too_many_attempts` for a client that is over its bound. */
  check(client: string): void {
    const bucket = this.#buckets.get(groupOf(client));
    if (bucket === undefined) return;
    const failures = this.#leaked(bucket);
    if (failures >= failuresMax) throw tooManyAttempts((failures - failuresMax + 1) * refillMs);
  }

  /** Counts a failure. Throws `too_many_attempts` where it was one too many. */
  failed(client: string): void {
    const group = groupOf(client);
    const bucket = this.#buckets.get(group);
    const failures = bucket === undefined ? 0 : this.#leaked(bucket);
    this.#buckets.delete(group);
    const next = Math.min(failures + 1, failuresMax + 1);
    this.#buckets.set(group, { failures: next, lastMs: this.#clock.monotonicMs() });
    if (this.#buckets.size > clientsMax) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    if (next > failuresMax) throw tooManyAttempts(refillMs);
  }

  #leaked({ failures, lastMs }: Bucket): number {
    return Math.max(0, failures - (this.#clock.monotonicMs() - lastMs) / refillMs);
  }
}

/** The name of a client's group: a network of IPv6 (/64) counts as one, since whoever has one address of it has all. */
export function groupOf(client: string): string {
  if (!client.includes(':') || !ipaddr.isValid(client)) return client;
  // An address of IPv4 that is written as one of IPv6 is the former.
  const address = ipaddr.process(client);
  return address.kind() === 'ipv4'
    ? address.toString()
    : (address as ipaddr.IPv6).parts.slice(0, networkParts).join(':');
}

function tooManyAttempts(retryAfterMs: number): ServiceError {
  const message = 'too many wrong credentials came from this address; wait before the next attempt';
  return new ServiceError('too_many_attempts', message, { retryAfterMs: Math.ceil(retryAfterMs) });
}
