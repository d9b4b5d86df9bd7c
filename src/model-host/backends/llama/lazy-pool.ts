import type { Clock } from '../../../lib/clock.ts';
import type { HostMemory } from '../../child/host-memory.ts';

/** An entry and how it is opened, when it is first asked for. */
export interface Opening<T> {
  readonly key: string;
  /** Memory that it takes. */
  readonly bytes: number;
  /** Whether the last used of this sort stays however long it is idle. */
  readonly lastStays: boolean;
  readonly open: () => Promise<T>;
  readonly close: (value: T) => Promise<void>;
}

export interface Lease<T> {
  readonly value: T;
  readonly release: () => void;
}

interface Entry {
  readonly bytes: number;
  readonly lastStays: boolean;
  readonly value: Promise<unknown>;
  readonly close: () => Promise<void>;
  users: number;
  lastUse: number;
  cancelIdle: (() => void) | undefined;
}

/** An entry goes when it was unused for this long, in milliseconds. */
const idleMs = 60_000;

/**
 * The memory of a model beside its weights: states of several precisions and lengths, and models that draft. Each is opened
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
  keep<T>(opening: Omit<Opening<T>, 'open'>, value: T): void {
    this.#add(opening, Promise.resolve(value));
  }

  /** Leases of this key that are held; undefined where it is closed. */
  usersOf(key: string): number | undefined {
    return this.#entries.get(key)?.users;
  }

  /** Leases the value of this key, and opens it first where it is closed; undefined where memory is short. */
  async lease<T>(opening: Opening<T>): Promise<Lease<T> | undefined> {
    const { key, bytes } = opening;
    if (!this.#entries.has(key)) {
      if (!(await this.#makeRoom(bytes))) return undefined;
      // Another request may have opened it while room was made.
      if (this.#entries.has(key)) this.#memory.release(bytes);
      else this.#add(opening, opening.open());
    }
    const entry = this.#entries.get(key) as Entry;
    this.#uses += 1;
    entry.lastUse = this.#uses;
    return (await this.#hold(key, entry)) as Lease<T>;
  }

  /** Leases the last used of those that stay, which does not count as a use; undefined where none is open. */
  async borrow(): Promise<Lease<unknown> | undefined> {
    const last = [...this.#entries].find(([, entry]) => this.#isLast(entry));
    return last === undefined ? undefined : await this.#hold(...last, false);
  }

  async close(): Promise<void> {
    for (const [key, entry] of [...this.#entries]) await this.#close(key, entry);
  }

  #add<T>({ key, bytes, lastStays, close }: Omit<Opening<T>, 'open'>, value: Promise<T>): void {
    this.#uses += 1;
    const closeIt = async () => close(await value);
    const entry: Entry = {
      bytes,
      lastStays,
      value,
      close: closeIt,
      users: 0,
      lastUse: this.#uses,
      cancelIdle: undefined,
    };
    this.#entries.set(key, entry);
    // An entry that could not be opened takes no memory.
    value.catch(() => {
      if (this.#entries.get(key) === entry) this.#forget(key, entry);
    });
  }

  /** `isUse` restarts the idle time when the lease is released. */
  async #hold(key: string, entry: Entry, isUse = true): Promise<Lease<unknown>> {
    if (isUse) this.#stopIdle(entry);
    entry.users += 1;
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      entry.users -= 1;
      if (entry.users === 0 && entry.cancelIdle === undefined) this.#waitIdle(key, entry);
    };
    try {
      return { value: await entry.value, release };
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
      await this.#close(...oldest);
    }
    return true;
  }

  #waitIdle(key: string, entry: Entry): void {
    entry.cancelIdle = this.#clock.after(idleMs, () => void this.#dropIdle(key, entry));
  }

  async #dropIdle(key: string, entry: Entry): Promise<void> {
    entry.cancelIdle = undefined;
    if (entry.users > 0 || this.#entries.get(key) !== entry) return;
    // Once another one is used, it is the last no more.
    if (this.#isLast(entry)) this.#waitIdle(key, entry);
    else await this.#close(key, entry);
  }

  /** The next request probably wants it. */
  #isLast({ lastStays, lastUse }: Entry): boolean {
    const staying = [...this.#entries.values()].filter((each) => each.lastStays);
    return lastStays && staying.every((each) => each.lastUse <= lastUse);
  }

  async #close(key: string, entry: Entry): Promise<void> {
    this.#entries.delete(key);
    this.#stopIdle(entry);
    await entry.close().catch(() => undefined);
    this.#memory.release(entry.bytes);
  }

  #forget(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#memory.release(entry.bytes);
  }

  #stopIdle(entry: Entry): void {
    entry.cancelIdle?.();
    entry.cancelIdle = undefined;
  }
}
