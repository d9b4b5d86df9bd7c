import type { LRUCache } from 'lru-cache';
import { type Caller, ownerOf, seesModel } from '../../../access/principal.ts';
import type { Clock } from '../../../lib/clock.ts';
import { expiringCache } from '../../../runtime/expiring-cache.ts';
import type { ListedItem } from './input-items.ts';
import { placeOfItem } from './item-id.ts';

export interface StoredResponse {
  readonly id: string;
  /** By whom it was asked for, as `ownerOf` writes it. */
  readonly owner: string;
  readonly model: string;
  /** The answer as it was given. */
  readonly body: { readonly output: readonly ListedItem[]; readonly [member: string]: unknown };
  /** The items it was made from, those of the conversation before it included; not its instructions. */
  readonly input: readonly ListedItem[];
}

interface ResponseStoreOptions {
  readonly keptMs: number;
  /** Characters of all responses as JSON. */
  readonly charsMax: number;
}

/** Responses that were asked to be kept, in memory, by id. Those of others are not there, nor those of models beyond a grant. */
export class ResponseStore {
  readonly #responses: LRUCache<string, StoredResponse>;

  constructor(clock: Clock, { keptMs, charsMax }: ResponseStoreOptions) {
    const sizeOf = (response: StoredResponse) => JSON.stringify(response).length;
    this.#responses = expiringCache({ clock, keptMs, max: charsMax, sizeOf });
  }

  get(id: string, caller: Caller): StoredResponse | undefined {
    const response = this.#responses.peek(id);
    if (response?.owner !== ownerOf(caller.principal) || !seesModel(caller, response.model)) return undefined;
    return this.#responses.get(id);
  }

  /** An item of a stored response, by its own id. */
  item(id: string, caller: Caller): ListedItem | undefined {
    const place = placeOfItem(id);
    const response = place === undefined ? undefined : this.get(place.responseId, caller);
    const item = (place?.of === 'input' ? response?.input : response?.body.output)?.[place?.index ?? 0];
    return item?.id === id ? item : undefined;
  }

  /** False for one that is larger alone than all may be, and is not kept. */
  set(response: StoredResponse): boolean {
    return this.#responses.set(response.id, response).has(response.id);
  }

  /** Whether it was there. */
  delete(id: string, caller: Caller): boolean {
    return this.get(id, caller) !== undefined && this.#responses.delete(id);
  }
}
