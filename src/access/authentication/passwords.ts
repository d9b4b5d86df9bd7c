import { ServiceError } from '../../protocol/service-error.ts';

/** In bytes of UTF-8. */
const passwordBytesMin = 8;
const passwordBytesMax = 256;
/** Hashes that are computed at one time, and those that may wait; each takes 19 MiB and tens of milliseconds. */
const hashesMax = 2;
const waitingMax = 32;
/** The least that OWASP's Password Storage Cheat Sheet recommends for Argon2id, with one thread. */
const argon2 = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const;

/** Fails with `invalid_request` for a password that cannot be taken. */
export function checkPassword(password: string): void {
  const bytes = Buffer.byteLength(password);
  if (bytes >= passwordBytesMin && bytes <= passwordBytesMax && !password.includes('\0')) return;
  const message = `a password has ${passwordBytesMin} to ${passwordBytesMax} bytes, and no NUL`;
  throw new ServiceError('invalid_request', message);
}

/** Hashes passwords on the runtime's threads, a few at a time. */
export class Passwords {
  #running = 0;
  readonly #waiting: (() => void)[] = [];
  #decoy: Promise<string> | undefined;

  hash(password: string): Promise<string> {
    checkPassword(password);
    return this.#run(() => Bun.password.hash(password, argon2));
  }

  /** Without a hash, for a user that is not there or has no password, it takes as long and is false. */
  async verify(password: string, hash: string | null): Promise<boolean> {
    if (Buffer.byteLength(password) > passwordBytesMax) return false;
    this.#decoy ??= Bun.password.hash(crypto.randomUUID(), argon2);
    const against = hash ?? (await this.#decoy);
    const isRight = await this.#run(() => Bun.password.verify(password, against));
    return isRight && hash !== null;
  }

  async #run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#running >= hashesMax) {
      if (this.#waiting.length >= waitingMax) {
        throw new ServiceError('unavailable', 'too many passwords are being checked already', { retryAfterMs: 500 });
      }
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    } else this.#running += 1;
    try {
      return await work();
    } finally {
      // The place goes to the next in line.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
