import { readBase64 } from '../../lib/text/base64.ts';
import { invalidQuery } from '../nodes/query-members.ts';
import type { PlanCursor, PlanSort } from '../plan/native-plan.ts';

/** The table and order that a cursor belongs to: it opens in no other table and under no other order. */
export interface CursorScope {
  table: string;
  sort: PlanSort[];
}

/** A cursor as a request gives it: the `_sort` of a hit. */
export interface RequestedCursor {
  values: unknown[];
  /** The sealed end of `_sort`. */
  sealed: string;
  /** The page before the hit is wanted, not the one after it. */
  before: boolean;
}

/** Where a hit stands: what the engine says of it, and its key. */
export interface CursorPosition {
  position: string;
  key: string;
}

/** Half of an HMAC-SHA256, which RFC 2104 allows. */
const sealBytes = 16;

/**
 * Makes and opens the last member of `_sort`: a hit's exact place in the order, authenticated together with the
 * values beside it, the table and the sort fields.
 */
export class CursorSeal {
  readonly #key: Uint8Array;

  /** `key` stays the same for the life of a data directory, at least 32 bytes. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** `values` as `_sort` shows them. */
  seal(scope: CursorScope, values: unknown[], at: CursorPosition): string {
    const seal = this.#mac(scope, values, at);
    return Buffer.concat([seal, Buffer.from(JSON.stringify([at.position, at.key]))]).toString('base64url');
  }

  /** Fails with `invalid_query` for what was not sealed here for this scope and these values. */
  open(scope: CursorScope, { values, sealed, before }: RequestedCursor): PlanCursor {
    const bytes = readBase64(sealed) ?? new Uint8Array();
    const at = readPosition(bytes.subarray(sealBytes));
    const seal = bytes.subarray(0, sealBytes);
    if (at && seal.length === sealBytes && crypto.timingSafeEqual(seal, this.#mac(scope, values, at))) {
      return { ...at, before };
    }
    throw invalidQuery(
      before ? 'search_before' : 'search_after',
      'is not the _sort of a hit of this table under this order_by',
    );
  }

  #mac({ table, sort }: CursorScope, values: unknown[], { position, key }: CursorPosition): Buffer {
    const fields = sort.map(({ field, desc }) => [field, desc]);
    const message = JSON.stringify(['cursor', 1, table, fields, values, position, key]);
    return new Bun.CryptoHasher('sha256', this.#key).update(message).digest().subarray(0, sealBytes);
  }
}

function readPosition(bytes: Uint8Array): CursorPosition | undefined {
  try {
    const content: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    if (!Array.isArray(content)) return undefined;
    const [position, key] = content as unknown[];
    return typeof position === 'string' && typeof key === 'string' ? { position, key } : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}
