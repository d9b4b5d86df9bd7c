import type { Database, Statement } from 'bun:sqlite';
import { ServiceError } from '../../protocol/service-error.ts';
import type { JobChange, JobRecord, NewJob } from './catalog-records.ts';

const columns =
  'id AS jobId, kind, principal, idempotency_key AS idempotencyKey, request_hash AS requestHash, attempt, phase, state, ' +
  'created_ms AS createdMs, updated_ms AS updatedMs, expires_ms AS expiresMs';

/** Reads jobs, by whichever connection. */
export class JobReading {
  readonly #byId: Statement;
  readonly #unfinished: Statement;
  readonly #ofKind: Statement;

  constructor(database: Database) {
    this.#byId = database.prepare(`SELECT ${columns} FROM jobs WHERE id = ?`);
    this.#ofKind = database.prepare(`SELECT ${columns} FROM jobs WHERE kind = ? AND id < ? ORDER BY id DESC LIMIT ?`);
    this.#unfinished = database.prepare(`SELECT ${columns} FROM jobs WHERE phase IN ('queued', 'running') ORDER BY id`);
  }

  list(kind: string, beforeId: number, limit: number): JobRecord[] {
    return this.#ofKind.all(kind, beforeId, limit) as JobRecord[];
  }

  get(jobId: number): JobRecord | undefined {
    return (this.#byId.get(jobId) as JobRecord | null) ?? undefined;
  }

  unfinished(): JobRecord[] {
    return this.#unfinished.all() as JobRecord[];
  }

  close(): void {
    this.#byId.finalize();
    this.#unfinished.finalize();
    this.#ofKind.finalize();
  }
}

/** The writer's side of the jobs in `catalog.db`; its calls are made inside a transaction. */
export class JobTable {
  readonly #reading: JobReading;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(database: Database) {
    this.#reading = new JobReading(database);
    this.#statements = prepare(database);
  }

  add(job: NewJob): JobRecord {
    const { kind, principal, idempotencyKey, requestHash, state, createdMs } = job;
    const held = this.#statements.byKey.get(principal, kind, idempotencyKey) as JobRecord | null;
    if (held && held.requestHash !== requestHash) {
      const message = 'the idempotency key was used before, for a request with another body; take another key';
      throw new ServiceError('idempotency_conflict', message);
    }
    if (held) return held;
    const added = this.#statements.add.get(kind, principal, idempotencyKey, requestHash, state, createdMs, createdMs);
    return added as JobRecord;
  }

  change({ jobId, phase, attempt, state, updatedMs, expiresMs }: JobChange): boolean {
    const next = phase ?? null;
    const values = [next, attempt ?? null, state ?? null, updatedMs, expiresMs ?? null, jobId, next];
    return this.#statements.change.run(...values).changes > 0;
  }

  removeExpired(nowMs: number): void {
    this.#statements.removeExpired.run(nowMs);
  }

  close(): void {
    this.#reading.close();
    for (const statement of Object.values(this.#statements)) statement.finalize();
  }
}

function prepare(database: Database) {
  const statement = (sql: string): Statement => database.prepare(sql);
  return {
    // A key that is null equals no other.
    byKey: statement(`SELECT ${columns} FROM jobs WHERE principal = ? AND kind = ? AND idempotency_key = ?`),
    add: statement(
      'INSERT INTO jobs (kind, principal, idempotency_key, request_hash, attempt, phase, state, created_ms, updated_ms) ' +
        `VALUES (?, ?, ?, ?, 0, 'queued', ?, ?, ?) RETURNING ${columns}`,
    ),
    change: statement(
      'UPDATE jobs SET phase = coalesce(?, phase), attempt = coalesce(?, attempt), state = coalesce(?, state), ' +
        "updated_ms = ?, expires_ms = coalesce(?, expires_ms) WHERE id = ? AND (? IS NULL OR phase IN ('queued', 'running'))",
    ),
    removeExpired: statement('DELETE FROM jobs WHERE expires_ms <= ?'),
  };
}
