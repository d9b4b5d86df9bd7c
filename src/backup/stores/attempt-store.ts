import type { Creation, ObjectStore, ObjectWriter } from './object-store.ts';

/** A location that remembers what one attempt at a backup has put there, so that it can be taken away again. */
export class AttemptStore implements ObjectStore {
  readonly #store: ObjectStore;
  readonly #folder: string;
  readonly #names = new Set<string>();

  /** `folder`: that of the attempt alone; what lies elsewhere may be another attempt's, and stays. */
  constructor(store: ObjectStore, folder: string) {
    this.#store = store;
    this.#folder = folder;
  }

  open(name: string): Promise<ObjectWriter> {
    this.#note(name);
    return this.#store.open(name);
  }

  create(name: string, bytes: Uint8Array): Promise<Creation> {
    this.#note(name);
    return this.#store.create(name, bytes);
  }

  read(name: string, from: number, to: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    return this.#store.read(name, from, to);
  }

  list(query: { prefix: string; after: string; limit: number }): Promise<{ names: string[]; more: boolean }> {
    return this.#store.list(query);
  }

  remove(name: string): Promise<void> {
    this.#names.delete(name);
    return this.#store.remove(name);
  }

  /** Removes what was put there, as far as the location can be reached: every try at one that is silent takes its time. */
  async discard(isMeant: (name: string) => boolean = () => true): Promise<void> {
    try {
      for (const name of [...this.#names].filter(isMeant)) await this.remove(name);
    } catch {
      // Files that are left belong to no backup.
    }
  }

  #note(name: string): void {
    if (name.startsWith(this.#folder)) this.#names.add(name);
  }
}
