import { type Caller, ownerOf, type Principal } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import { assert, must } from '../../lib/assert.ts';
import { type Clock, pause } from '../../lib/clock.ts';
import { KeyedMutex } from '../../lib/concurrency/keyed-mutex.ts';
import type { Service } from '../../lib/concurrency/supervise.ts';
import type { SyncLevel } from '../../protocol/database/writes.ts';
import { checkDocumentKey } from '../../protocol/document-key.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { DocumentReads } from '../reads/document-reads.ts';
import type { BatchWriter } from '../writes/batch-writer.ts';
import { readSyncLevel, strongest, syncLevelOf } from '../writes/sync-level.ts';
import { commitBody } from './commit-body.ts';
import { Session, type SessionAnswer, versionConflict } from './session.ts';
import { type Held, SessionTotals } from './session-totals.ts';
import { documentAsStaged } from './staged-document.ts';
import { operationsOf } from './staged-request.ts';
import { sizeOf, sum } from './staged-writes.ts';

/** Bounds of all sessions of a database. */
interface SessionBounds {
  readonly transactionsMax: number;
  readonly transactionBytesMax: number;
  readonly allTransactionsBytesMax: number;
  readonly transactionLeaseMs: number;
}

interface SessionsDeps {
  readonly writer: Pick<BatchWriter, 'check' | 'commitTransaction'>;
  readonly documents: Pick<DocumentReads, 'lookup'>;
  readonly clock: Clock;
  readonly bounds: SessionBounds;
  /** 32 hexadecimal digits that nobody can guess. */
  readonly freshId: () => string;
}

/** The answer of a read inside of a transaction. */
export interface Snapshot {
  readonly table: string;
  readonly key: string;
  /** Of the stored document; "0" when there is none. */
  readonly version: string;
  /** JSON object; undefined when there is no document. */
  readonly json: string | Uint8Array | undefined;
}

/** Of all open transactions and of their bytes, those that one user may have. */
const userShare = 1 / 4;

type LeaseState = 'none' | 'held' | 'expired';

const decoder = new TextDecoder();

/**
 * Transactions that are put together over several requests. They are kept in memory: nothing is written, locked or seen by
 * anybody else before the commit, which is one optimistic commit of all that was read and staged. A session that nobody has
 * used for the time of its lease is lost.
 */
export class TransactionSessions implements Service {
  readonly name = 'transaction-sessions';
  readonly #deps: SessionsDeps;
  readonly #sessions = new Map<string, Session>();
  readonly #keyed = new KeyedMutex();
  readonly #totals = new SessionTotals();

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** Sessions that are kept, and what they hold in memory. */
  get size(): Held {
    return this.#totals.all;
  }

  begin(syncLevel: SyncLevel | undefined, caller: Caller): Session {
    const { clock, bounds, freshId } = this.#deps;
    if (this.#sessions.size >= bounds.transactionsMax) this.#removeUnheld();
    if (this.#sessions.size >= bounds.transactionsMax) {
      throw tooMany(`${bounds.transactionsMax} transactions are open`);
    }
    this.#checkSessionsOf(caller);
    readSyncLevel(syncLevel, 'propose');
    const leaseUntilMs = clock.monotonicMs() + bounds.transactionLeaseMs;
    const at = { wallMs: clock.nowMs(), leaseUntilMs };
    const by = { credential: credentialOf(caller), user: ownerOf(caller.principal) };
    const session = new Session(freshId(), by, syncLevel ?? 'propose', at);
    this.#sessions.set(session.id, session);
    this.#totals.add(session.user, { sessions: 1, bytes: 0 });
    return session;
  }

  /** The caller's, oldest first. */
  list(caller: Caller): Session[] {
    const credential = credentialOf(caller);
    return [...this.#sessions.values()].filter((session) => session.credential === credential);
  }

  /** Does not renew the lease. Fails with `transaction_not_found`, also for a session of another credential. */
  get(id: string, caller: Caller): Session {
    if (!/^[0-9a-f]{32}$/.test(id)) {
      throw new ServiceError('invalid_request', 'the id of a transaction has 32 hexadecimal digits');
    }
    const session = this.#sessions.get(id);
    if (session?.credential === credentialOf(caller)) return session;
    const message = `there is no transaction "${id}"; it has ended, or the server was started since; begin another one`;
    throw new ServiceError('transaction_not_found', message);
  }

  leaseState({ answer, inUse, leaseUntilMs }: Session): LeaseState {
    if (answer) return 'none';
    return inUse > 0 || leaseUntilMs > this.#deps.clock.monotonicMs() ? 'held' : 'expired';
  }

  /** Wall time, milliseconds since 1970. */
  nowMs(): number {
    return this.#deps.clock.nowMs();
  }

  /** Wall time, milliseconds since 1970. */
  leaseExpiresMs({ leaseUntilMs }: Session): number {
    const { clock } = this.#deps;
    return clock.nowMs() + leaseUntilMs - clock.monotonicMs();
  }

  /** Stages the operations of a commit request, whose `read_set` may be absent. What is refused stages nothing of it. */
  stage(id: string, body: Uint8Array, caller: Caller): Promise<Session> {
    return this.#use(id, caller, async (session) => {
      const { scanned, wait, readSet } = await this.#deps.writer.check(body, caller);
      const operations = operationsOf(body, scanned);
      const added = operations.map(sizeOf).reduce(sum, { operations: 0, bytes: 0 });
      this.#checkRoom(session, added, readSet.length);
      this.#checkBytesOf(caller, added.bytes);
      session.noteReads(readSet);
      for (const operation of operations) session.writes.stage(operation);
      this.#count(session);
      const held = readSyncLevel(session.syncLevel, 'propose');
      if (strongest([wait, held]) !== held) session.syncLevel = syncLevelOf(wait);
      return session;
    });
  }

  /**
   * The document as the commit would find it, staged changes included. The commit then checks the version of the stored one.
   * Fails with `transaction_conflict` unless that is `version`, and what the session has read before.
   */
  read(id: string, { table, key, version }: ReadRequest, caller: Caller): Promise<Snapshot> {
    return this.#use(id, caller, async (session) => {
      const stored = await this.#stored(table, key, caller);
      if (version !== undefined && version !== stored.version) {
        throw versionConflict({ table, key }, version, stored.version);
      }
      this.#checkRoom(session, { operations: 0, bytes: 0 }, 1);
      session.noteSnapshot({ table, key, version: stored.version });
      const staged = session.writes.of(table, key);
      const timestamp = new Date(this.#deps.clock.nowMs()).toISOString();
      const json = staged ? documentAsStaged(stored.json, staged, timestamp) : stored.json;
      return { table, key, version: stored.version, json };
    });
  }

  savepoint(id: string, caller: Caller): Promise<number> {
    return this.#use(id, caller, (session) => {
      if (session.savepointIds.length < limits.savepointsMax) return session.addSavepoint();
      const message = `a transaction has at most ${limits.savepointsMax} savepoints`;
      throw new ServiceError('savepoint_limit_reached', message);
    });
  }

  rollback(id: string, savepointId: number, caller: Caller): Promise<void> {
    return this.#use(id, caller, (session) => session.rollback(savepointId));
  }

  /**
   * Writes what is staged if nothing that was read has changed. A repetition gets the same answer. Fails with
   * `transaction_conflict`, after which there is no such session; after any other failure it can be committed again, and
   * takes effect once.
   */
  commit(id: string, caller: Caller): Promise<SessionAnswer> {
    return this.#keyed.run(id, async () => {
      const { answer } = this.get(id, caller);
      if (answer) return answer;
      return this.#used(this.get(id, caller), (session) => this.#commit(session, caller));
    });
  }

  abort(id: string, caller: Caller): Promise<void> {
    return this.#use(id, caller, (session) => this.#remove(session));
  }

  /** Removes the caller's sessions that have ended or lost their lease and were last used before this wall time. */
  cleanUp(beforeMs: number, caller: Caller): number {
    const lost = this.list(caller).filter(
      (session) => this.leaseState(session) !== 'held' && session.touchedMs < beforeMs,
    );
    for (const session of lost) this.#remove(session);
    return lost.length;
  }

  /** Removes sessions once they have been lost, or have ended, for the time of a lease. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, bounds } = this.#deps;
    while (!signal.aborted) {
      await pause(clock, bounds.transactionLeaseMs, signal);
      const longAgoMs = clock.monotonicMs() - bounds.transactionLeaseMs;
      this.#removeUnheld(({ leaseUntilMs }) => leaseUntilMs <= longAgoMs);
    }
  }

  /** Works with a session that is open and held, one request at a time; its lease begins again afterwards. */
  #use<Result>(id: string, caller: Caller, task: (session: Session) => Promise<Result> | Result): Promise<Result> {
    return this.#keyed.run(id, async () => {
      const session = this.get(id, caller);
      if (!session.answer) return this.#used(session, task);
      throw new ServiceError('transaction_ended', `transaction "${id}" is committed; begin another one`);
    });
  }

  async #used<Result>(session: Session, task: (session: Session) => Promise<Result> | Result): Promise<Result> {
    const { clock, bounds } = this.#deps;
    if (this.leaseState(session) === 'expired') {
      const seconds = bounds.transactionLeaseMs / 1_000;
      const message = `transaction "${session.id}" was not used for ${seconds} s and is lost; begin another one`;
      throw new ServiceError('transaction_lease_lost', message);
    }
    session.inUse += 1;
    try {
      return await task(session);
    } finally {
      session.inUse -= 1;
      session.touchedMs = clock.nowMs();
      session.leaseUntilMs = clock.monotonicMs() + bounds.transactionLeaseMs;
      if (this.#sessions.has(session.id)) this.#count(session);
    }
  }

  async #commit(session: Session, caller: Caller): Promise<SessionAnswer> {
    const { writer } = this.#deps;
    if (session.writes.size.operations === 0 && session.reads.length === 0) {
      session.end({ status: 'committed', tables: {} });
    } else {
      try {
        const body = commitBody(session);
        const { counts, ...outcome } = await writer.commitTransaction(body, caller, `transaction-${session.id}`);
        session.end({ ...outcome, tables: counts });
      } catch (error) {
        if (error instanceof ServiceError && error.code === 'transaction_conflict') this.#remove(session);
        throw error;
      }
    }
    return must(session.answer, 'the answer of a session that has ended');
  }

  /** The stored document and its version. */
  async #stored(table: string, key: string, caller: Caller): Promise<{ version: string; json: string | undefined }> {
    try {
      const { json, version } = await this.#deps.documents.lookup(table, checkDocumentKey(key), undefined, caller);
      return { version: String(version), json: typeof json === 'string' ? json : decoder.decode(json) };
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'key_not_found') return { version: '0', json: undefined };
      throw error;
    }
  }

  #checkRoom(session: Session, added: { operations: number; bytes: number }, reads: number): void {
    const { transactionBytesMax, allTransactionsBytesMax } = this.#deps.bounds;
    const refuse = (what: string) => {
      throw new ServiceError('limit_exceeded', `a transaction has at most ${what}; commit it in parts`);
    };
    const { operations } = session.writes.size;
    if (operations + added.operations > limits.batchKeysMax) refuse(`${limits.batchKeysMax} staged operations`);
    if (session.reads.length + reads > limits.readSetKeysMax) refuse(`${limits.readSetKeysMax} documents read`);
    if (session.bytes + added.bytes > transactionBytesMax) refuse(`${transactionBytesMax} bytes`);
    const isTooMuch = () => this.size.bytes + added.bytes > allTransactionsBytesMax;
    if (isTooMuch()) this.#removeUnheld();
    if (isTooMuch()) {
      throw tooMany(`open transactions hold ${allTransactionsBytesMax} bytes`);
    }
  }

  /** One user, whatever keys it has, leaves room for the others. */
  #checkSessionsOf({ principal }: Caller): void {
    const most = Math.ceil(this.#deps.bounds.transactionsMax * userShare);
    this.#checkShare(principal, ({ sessions }) => sessions < most, `has ${most} open transactions`);
  }

  #checkBytesOf({ principal }: Caller, added: number): void {
    const { transactionBytesMax, allTransactionsBytesMax } = this.#deps.bounds;
    const most = Math.max(transactionBytesMax, Math.floor(allTransactionsBytesMax * userShare));
    this.#checkShare(principal, ({ bytes }) => bytes + added <= most, `holds ${most} bytes in transactions`);
  }

  /** Fails with `too_many_transactions` where those of the user do not fit, also without the ones that are lost. */
  #checkShare(principal: Principal, fits: (held: Held) => boolean, most: string): void {
    if (principal.kind === 'everyone') return;
    const user = ownerOf(principal);
    if (fits(this.#totals.of(user))) return;
    this.#removeUnheld((session) => session.user === user);
    if (!fits(this.#totals.of(user))) throw tooMany(`one user ${most} at most`);
  }

  #removeUnheld(concerns: (session: Session) => boolean = () => true): void {
    for (const session of this.#sessions.values()) {
      if (this.leaseState(session) !== 'held' && concerns(session)) this.#remove(session);
    }
  }

  /** Brings the totals up to what the session holds now. */
  #count(session: Session): void {
    this.#totals.add(session.user, { sessions: 0, bytes: session.bytes - session.countedBytes });
    session.countedBytes = session.bytes;
  }

  #remove({ id, user, countedBytes }: Session): void {
    if (this.#sessions.delete(id)) this.#totals.add(user, { sessions: -1, bytes: -countedBytes });
  }
}

export interface ReadRequest {
  readonly table: string;
  readonly key: string;
  readonly version?: string | undefined;
}

/** A session belongs to the credential that has begun it: a key of the same user may be allowed less. */
function credentialOf({ principal, keyId }: Caller): string {
  const isByKey = principal.kind === 'granted' && principal.byKey === true;
  assert(isByKey === (keyId !== undefined), 'a caller with a key says which');
  return `${principal.kind}\0${ownerOf(principal)}\0${keyId ?? ''}`;
}

function tooMany(what: string): ServiceError {
  return new ServiceError('too_many_transactions', `${what}; end some of them, or try again later`);
}
