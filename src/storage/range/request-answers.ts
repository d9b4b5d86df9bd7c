import type { Database } from 'bun:sqlite';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RangeId, RequestKey, WriteCounts } from '../write-request.ts';

/** The result of a committed request in one range. */
export interface AnsweredWrite {
  rangeId: RangeId;
  counts: WriteCounts;
  /** Undefined when nothing changed. */
  lastSequence?: number | undefined;
}

/** A row of `request_answers`. */
export interface KeptAnswer extends RequestKey {
  createdMs: number;
  writes: readonly AnsweredWrite[];
}

/** An answer counts for so long, in milliseconds, and this many of them are kept in a range. */
const keptMs = 24 * 3_600 * 1_000;
export const answersMax = 100_000;
/** Old rows that one write removes: more than it adds. */
const expiredMax = 8;

/** Answers of keyed requests of one range, committed with what they answer. */
export class RequestAnswers {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The answer that the request got when it was sent first. Fails with `idempotency_conflict` when another one had the key. */
  find({ client, key, bodyHash }: RequestKey, nowMs: number): readonly AnsweredWrite[] | undefined {
    const row = this.#database
      .query(
        'SELECT body_hash AS hash, created_ms AS createdMs, answer FROM request_answers WHERE client = ? AND request_id = ?',
      )
      .get(client, key) as { hash: Uint8Array; createdMs: number; answer: string } | null;
    if (!row || row.createdMs <= nowMs - keptMs) return undefined;
    if (Buffer.compare(row.hash, bodyHash) !== 0) throw keyConflict();
    return JSON.parse(row.answer) as AnsweredWrite[];
  }

  /** Inside the transaction of what it answers; forgets answers that are too old or too many. */
  keep({ client, key, bodyHash, createdMs, writes }: KeptAnswer): void {
    const { lastInsertRowid } = this.#database
      .query(
        'INSERT OR REPLACE INTO request_answers (client, request_id, body_hash, created_ms, answer) VALUES (?, ?, ?, ?, ?)',
      )
      .run(client, key, bodyHash, createdMs, JSON.stringify(writes));
    this.#database
      .query(
        'DELETE FROM request_answers WHERE id IN ' +
          '(SELECT id FROM (SELECT id, created_ms FROM request_answers ORDER BY id LIMIT ?) WHERE id <= ? OR created_ms <= ?)',
      )
      .run(expiredMax, Number(lastInsertRowid) - answersMax, createdMs - keptMs);
  }
}

function keyConflict(): ServiceError {
  const message = 'the idempotency key was used for another request; use a key of its own for each request';
  return new ServiceError('idempotency_conflict', message);
}
