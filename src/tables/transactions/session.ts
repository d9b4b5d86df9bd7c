import type { ReadSetItem, SyncLevel } from '../../protocol/database/writes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { StagedWrites } from './staged-writes.ts';

/** How a session has ended; one that was aborted is gone. */
export interface SessionAnswer {
  readonly status: 'committed' | 'committed_repair_required';
  readonly tables: Readonly<Record<string, object>>;
  readonly error?: string;
}

const readOverheadBytes = 128;

/** A transaction that is being put together: what it has read, and what it is to write. */
export class Session {
  readonly id: string;
  /** The credential that has begun it, and that alone may use it. */
  readonly credential: string;
  /** The user whose credential that is, as `ownerOf` writes it. */
  readonly user: string;
  /** Wall time, milliseconds since 1970. */
  readonly beganMs: number;
  touchedMs: number;
  /** Monotonic time. */
  leaseUntilMs: number;
  syncLevel: SyncLevel;
  /** Requests that work with it now; meanwhile its lease does not run out. */
  inUse = 0;
  /** Of `bytes`, those that the totals of all sessions hold. */
  countedBytes = 0;
  answer: SessionAnswer | undefined;
  writes = new StagedWrites();
  readonly #reads = new Map<string, ReadSetItem>();
  /** Keys of `#reads` that the session has read itself. */
  readonly #snapshots = new Set<string>();
  /** Marks in the staged writes, by savepoint. */
  readonly #savepoints = new Map<number, number>();
  #readBytes = 0;

  constructor(
    id: string,
    by: { readonly credential: string; readonly user: string },
    syncLevel: SyncLevel,
    at: { readonly wallMs: number; readonly leaseUntilMs: number },
  ) {
    this.id = id;
    this.credential = by.credential;
    this.user = by.user;
    this.syncLevel = syncLevel;
    this.beganMs = at.wallMs;
    this.touchedMs = at.wallMs;
    this.leaseUntilMs = at.leaseUntilMs;
  }

  get bytes(): number {
    return this.writes.size.bytes + this.#readBytes;
  }

  get savepointIds(): number[] {
    return [...this.#savepoints.keys()];
  }

  /** Every version that the commit checks. */
  get reads(): ReadSetItem[] {
    return [...this.#reads.values()];
  }

  /** The versions that the session has read itself. */
  get snapshots(): ReadSetItem[] {
    return [...this.#reads].filter(([name]) => this.#snapshots.has(name)).map(([, item]) => item);
  }

  /**
   * Has the commit check these versions. Fails with `transaction_conflict`, and notes none of them, where the session knows a
   * document at another version, or the list names it at two.
   */
  noteReads(items: readonly ReadSetItem[]): void {
    const named = new Map<string, string>();
    for (const item of items) {
      const name = nameOf(item.table, item.key);
      const known = this.#reads.get(name)?.version ?? named.get(name) ?? item.version;
      if (known !== item.version) throw versionConflict(item, item.version, known);
      named.set(name, known);
    }
    for (const item of items) this.#note(item);
  }

  /** Has the commit check the version that was read. Fails with `transaction_conflict` where the session knows another one. */
  noteSnapshot(item: ReadSetItem): void {
    const name = nameOf(item.table, item.key);
    const known = this.#reads.get(name)?.version ?? item.version;
    if (known !== item.version) throw versionConflict(item, known, item.version);
    this.#note(item);
    this.#snapshots.add(name);
  }

  #note(item: ReadSetItem): void {
    const name = nameOf(item.table, item.key);
    if (!this.#reads.has(name)) this.#readBytes += readOverheadBytes + 2 * name.length;
    this.#reads.set(name, item);
  }

  addSavepoint(): number {
    const id = this.#savepoints.size + 1;
    this.#savepoints.set(id, this.writes.mark());
    return id;
  }

  /**
   * Forgets what was staged after the savepoint. Later savepoints stay and mean the same place; what was read stays as well:
   * its caller has seen it.
   */
  rollback(savepointId: number): void {
    const mark = this.#savepoints.get(savepointId);
    if (mark === undefined) {
      throw new ServiceError('savepoint_not_found', `transaction "${this.id}" has no savepoint ${savepointId}`);
    }
    this.writes.rollback(mark);
    for (const [id, later] of this.#savepoints) this.#savepoints.set(id, Math.min(mark, later));
  }

  /** Keeps the answer alone, for repetitions of the commit. */
  end(answer: SessionAnswer): void {
    this.answer = answer;
    this.writes = new StagedWrites();
    this.#reads.clear();
    this.#snapshots.clear();
    this.#savepoints.clear();
    this.#readBytes = 0;
  }
}

/** The document has another version than the one that a caller depends on. */
export function versionConflict(
  { table, key }: Pick<ReadSetItem, 'table' | 'key'>,
  expected: string,
  current: string,
): ServiceError {
  const message = `the document "${key}" has changed since it was read; abort the transaction and begin again`;
  return new ServiceError('transaction_conflict', message, {
    details: { table, key, expected_version: expected, current_version: current },
  });
}

function nameOf(table: string, key: string): string {
  return `${table}\0${key}`;
}
