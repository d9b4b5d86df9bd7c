import type { Clock } from '../../../lib/clock.ts';
import type { HostMemory } from '../../host-memory.ts';

/** What is opened when it is first asked for. */
export interface Opening<T> {
  readonly key: string;
  /** Memory that it takes. */
  readonly bytes: number;
  readonly open: () => Promise<T>;
  readonly close: (value: T) => Promise<void>;
}

export interface Lease<T> {
  readonly value: T;
  readonly release: () => void;
}

interface Entry {
  readonly bytes: number;
  readonly value: Promise<unknown>;
  readonly close: () => Promise<void>;
  users: number;
  lastUse: number;
  cancelIdle: (() => void) | undefined;
}

/** Unused for this long, all but the last used goes, in milliseconds. */
const idleMs = 60_000;

/**
 * What a model opens beside its weights: states of several precisions and lengths, and models that draft. Each is opened
 * under the memory limit; where that leaves no room, the least recently used that is idle goes.
 */
export class LazyPool {
  readonly #memory: HostMemory;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  #uses = 0;

  constructor(memory: HostMemory, clock: Clock) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /** Keeps what is open already, and counted. */
  keep<T>({ key, bytes, close }: Omit<Opening<T>, 'open'>, value: T): void {
    this.#add(key, bytes, Promise.resolve(value), () => close(value));
  }

  isOpen(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Leases the value of this key, and opens it first where it is closed; undefined where memory is short. */
  async lease<T>(opening: Opening<T>): Promise<Lease<T> | undefined> {
    const { key, bytes } = opening;
    if (!this.#entries.has(key) && !(await this.#makeRoom(bytes))) return undefined;
    // Somebody else may have opened it while room was made.
    if (this.#entries.has(key)) return await this.#leaseOpen<T>(key);
    const value = opening.open();
    this.#add(key, bytes, value, async () => opening.close(await value));
    try {
      return await this.#leaseOpen<T>(key);
    } catch (error) {
      this.#entries.delete(key);
      this.#memory.release(bytes);
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const key of [...this.#entries.keys()]) await this.#close(key);
  }

  #add(key: string, bytes: number, value: Promise<unknown>, close: () => Promise<void>): void {
    this.#uses += 1;
    this.#entries.set(key, { bytes, value, close, users: 0, lastUse: this.#uses, cancelIdle: undefined });
  }

  async #leaseOpen<T>(key: string): Promise<Lease<T>> {
    const entry = this.#entries.get(key) as Entry;
    entry.cancelIdle?.();
    entry.users += 1;
    this.#uses += 1;
    entry.lastUse = this.#uses;
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      entry.users -= 1;
      if (entry.users === 0) entry.cancelIdle = this.#clock.after(idleMs, () => void this.#dropIdle(key, entry));
    };
    try {
      return { value: (await entry.value) as T, release };
    } catch (error) {
      entry.users -= 1;
      throw error;
    }
  }

  async #makeRoom(bytes: number): Promise<boolean> {
    while (!(await this.#memory.reserve(bytes))) {
      const oldest = [...this.#entries]
        .filter(([, { users }]) => users === 0)
        .toSorted(([, a], [, b]) => a.lastUse - b.lastUse)[0];
      if (oldest === undefined) return false;
      await this.#close(oldest[0]);
    }
    return true;
  }

  /** The last used stays: the next request probably wants it. */
  async #dropIdle(key: string, entry: Entry): Promise<void> {
    const isIdle = entry.users === 0 && this.#entries.get(key) === entry;
    if (isIdle && entry.lastUse < Math.max(...[...this.#entries.values()].map(({ lastUse }) => lastUse))) {
      await this.#close(key);
    }
  }

  async #close(key: string): Promise<void> {
    const entry = this.#entries.get(key) as Entry;
    this.#entries.delete(key);
    entry.cancelIdle?.();
    await entry.close().catch(() => undefined);
    this.#memory.release(entry.bytes);
  }
}
