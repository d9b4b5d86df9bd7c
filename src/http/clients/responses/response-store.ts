import type { LRUCache } from 'lru-cache';
import type { Clock } from '../../../lib/clock.ts';
import type { ResponseInputItem } from '../../../protocol/clients/responses.ts';
import type { MessageBody } from '../../../protocol/inference/generate.ts';
import { expiringCache } from '../../../runtime/expiring-cache.ts';
import { placeOfItem } from './item-id.ts';

export interface StoredResponse {
  readonly id: string;
  /** By whom it was asked for, as `ownerOf` writes it. */
  readonly owner: string;
  /** The answer as it was given. */
  readonly body: object;
  /** The conversation up to its end, without instructions. */
  readonly conversation: readonly MessageBody[];
}

interface ResponseStoreOptions {
  readonly keptMs: number;
  /** Characters of all responses as JSON. */
  readonly charsMax: number;
}

/** Responses that were asked to be kept, in memory, by id. Those of others are not there. */
export class ResponseStore {
  readonly #responses: LRUCache<string, StoredResponse>;

  constructor(clock: Clock, { keptMs, charsMax }: ResponseStoreOptions) {
    const sizeOf = (response: StoredResponse) => JSON.stringify(response).length;
    this.#responses = expiringCache({ clock, keptMs, max: charsMax, sizeOf });
  }

  get(id: string, owner: string): StoredResponse | undefined {
    const response = this.#responses.peek(id);
    return response?.owner === owner ? this.#responses.get(id) : undefined;
  }

  /** An item of the output of a stored response, by its own id. */
  item(id: string, owner: string): ResponseInputItem | undefined {
    const place = placeOfItem(id);
    if (place === undefined) return undefined;
    const body = this.get(place.responseId, owner)?.body as { output?: readonly ResponseInputItem[] } | undefined;
    return body?.output?.[place.index];
  }

  /** False for one that is larger alone than all may be, and is not kept. */
  set(response: StoredResponse): boolean {
    return this.#responses.set(response.id, response).has(response.id);
  }

  /** Whether it was there. */
  delete(id: string, owner: string): boolean {
    return this.get(id, owner) !== undefined && this.#responses.delete(id);
  }
}
