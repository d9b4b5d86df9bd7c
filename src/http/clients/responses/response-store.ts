import type { MessageBody } from '../../../protocol/inference/generate.ts';

export interface StoredResponse {
  readonly id: string;
  /** Name of the principal that asked for it. */
  readonly owner: string;
  /** The answer as it was given. */
  readonly body: object;
  /** What was said up to its end, instructions aside. */
  readonly conversation: readonly MessageBody[];
}

interface ResponseStoreOptions {
  readonly keptMs: number;
  /** Characters of all responses as JSON. */
  readonly charsMax: number;
}

interface Entry {
  readonly response: StoredResponse;
  readonly chars: number;
  readonly untilMs: number;
}

/** Responses that were asked to be kept, in memory. The oldest make room; those of others are not there. */
export class ResponseStore {
  readonly #monotonicMs: () => number;
  readonly #options: ResponseStoreOptions;
  readonly #entries = new Map<string, Entry>();
  #chars = 0;

  constructor(monotonicMs: () => number, options: ResponseStoreOptions) {
    this.#monotonicMs = monotonicMs;
    this.#options = options;
  }

  get(id: string, owner: string): StoredResponse | undefined {
    this.#expire();
    const response = this.#entries.get(id)?.response;
    return response?.owner === owner ? response : undefined;
  }

  set(response: StoredResponse): void {
    const chars = JSON.stringify(response).length;
    this.#expire();
    for (const id of this.#entries.keys()) {
      if (this.#chars + chars <= this.#options.charsMax) break;
      this.#remove(id);
    }
    if (chars > this.#options.charsMax) return;
    this.#entries.set(response.id, { response, chars, untilMs: this.#monotonicMs() + this.#options.keptMs });
    this.#chars += chars;
  }

  /** Whether it was there. */
  delete(id: string, owner: string): boolean {
    if (this.get(id, owner) === undefined) return false;
    this.#remove(id);
    return true;
  }

  #expire(): void {
    const nowMs = this.#monotonicMs();
    for (const [id, { untilMs }] of this.#entries) {
      if (untilMs > nowMs) return;
      this.#remove(id);
    }
  }

  #remove(id: string): void {
    this.#chars -= this.#entries.get(id)?.chars ?? 0;
    this.#entries.delete(id);
  }
}
