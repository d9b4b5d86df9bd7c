/** Sessions, and the bytes of memory that they hold. */
export interface Held {
  readonly sessions: number;
  readonly bytes: number;
}

const nothing: Held = { sessions: 0, bytes: 0 };

/** Sums of what sessions hold: of all of them, and of those of each user. */
export class SessionTotals {
  #all = nothing;
  readonly #byUser = new Map<string, Held>();

  get all(): Held {
    return this.#all;
  }

  of(user: string): Held {
    return this.#byUser.get(user) ?? nothing;
  }

  /** `added` is negative where the user holds less than before. */
  add(user: string, added: Held): void {
    this.#all = sum(this.#all, added);
    const own = sum(this.of(user), added);
    if (own.sessions > 0) this.#byUser.set(user, own);
    else this.#byUser.delete(user);
  }
}

function sum(left: Held, right: Held): Held {
  return { sessions: left.sessions + right.sessions, bytes: left.bytes + right.bytes };
}
