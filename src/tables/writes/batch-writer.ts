import { type Caller, ownerOf } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import {
  buildFrame,
  type FrameOptions,
  holdsEdges,
  holdsVectors,
  type ScannedWrite,
  scanWrite,
  sectionEntries,
} from '../../engine/write-frame.ts';
import type { Enrichment } from '../../enrichment/enrichment.ts';
import { graphsAmong, writtenVectorsOf } from '../../index-kinds/all-kinds.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { must } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import { KeyedMutex } from '../../lib/concurrency/keyed-mutex.ts';
import type { ReadWriteLock } from '../../lib/concurrency/read-write-lock.ts';
import { readFrame } from '../../lib/document-frame.ts';
import { type BatchCounts, batchRequest, type MergeResponse } from '../../protocol/database/writes.ts';
import { ServiceError, withDetails } from '../../protocol/service-error.ts';
import type { RangeLog } from '../../replication/range-log.ts';
import type { RangeWrite, ReadAssertion, WriteRequest } from '../../storage/write-request.ts';
import { graphsOfWrite, graphWritesOf } from '../graph/graph-writes.ts';
import { appendToTrees } from '../graph/tree-proof.ts';
import { constrainedTables, constraintsOf } from '../relational/constrained-tables.ts';
import { checkRows } from '../relational/row-rules.ts';
import { shownViolation } from '../relational/shown-violation.ts';
import type { Table, TableLease } from '../table.ts';
import type { TableLookup } from '../table-lookup.ts';
import { foreseeTransforms } from './foreseen-transforms.ts';
import { splitFrame } from './frame-split.ts';
import { checkRecords, planMerge, readMergeEnvelope, renderMerge } from './linear-merge.ts';
import { PermittedWrites } from './permitted-writes.ts';
import { leaseTables } from './ranges-at-once.ts';
import { isConflictOf, readAssertion } from './read-assertions.ts';
import { isRelationalTable, rowsLeft, transformsRows } from './relational-writes.ts';
import { readSyncLevel } from './sync-level.ts';
import { batchCounts, rangesOf, type TableWrites, type WrittenRange } from './table-writes.ts';
import { readTablesRequest, type TablesRequest } from './tables-request.ts';
import { refuseMisspelledMembers } from './unknown-members.ts';
import { settle } from './visible-write.ts';

/** Tries of a write whose transforms were enriched for documents that others have changed meanwhile. */
const enrichedTriesMax = 3;
/** The same where they were only checked, by rules or by row filters. */
const checkedTriesMax = 16;
const batchMembers = Object.keys(batchRequest.properties);

/** The events of writes for metrics. */
interface WriteObserver {
  wrote(counts: BatchCounts): void;
  /** A write waits because indexing is behind. */
  paced(): void;
  /** It waited for too long, and was refused. */
  refused(): void;
}

interface WriterDeps {
  readonly tables: TableLookup;
  readonly log: RangeLog;
  readonly clock: Clock;
  readonly enrichment: Pick<Enrichment, 'precompute'>;
  /** Held by who changes the columns of relational tables, shared by who writes their rows. */
  readonly columns: ReadWriteLock;
  readonly limits: Pick<typeof limits, 'backlogWaitMs'>;
}

/** The write path: from the bytes of a request to committed documents and the indexes that have to follow. */
export class BatchWriter {
  readonly #tables: TableLookup;
  readonly #log: RangeLog;
  readonly #clock: Clock;
  readonly #enrichment: Pick<Enrichment, 'precompute'>;
  readonly #columns: ReadWriteLock;
  readonly #limits: Pick<typeof limits, 'backlogWaitMs'>;
  readonly #observer: WriteObserver;
  readonly #keyed = new KeyedMutex();
  /** Transforms of relational rows, by table. */
  readonly #transforms = new KeyedMutex();

  constructor(deps: WriterDeps, observer: WriteObserver) {
    this.#tables = deps.tables;
    this.#log = deps.log;
    this.#clock = deps.clock;
    this.#enrichment = deps.enrichment;
    this.#columns = deps.columns;
    this.#limits = deps.limits;
    this.#observer = observer;
  }

  /** Inserts, deletes and transforms of one table. */
  batch(tableName: string, body: Uint8Array, caller: Caller, idempotencyKey?: string) {
    const run = (request: NamedRequest) => this.#batch(tableName, body, caller, request);
    return this.#once(`batch ${tableName}`, body, { caller, idempotencyKey }, run);
  }

  async #batch(tableName: string, body: Uint8Array, caller: Caller, request: NamedRequest) {
    const table = this.#tables.get(tableName, caller, 'write');
    using _columns = await this.#keepColumns([table]);
    using lease = await table.lease();
    const scanned = await scanWrite(body, 'batch');
    const envelope = JSON.parse(scanned.envelopeJson) as { sync_level?: unknown };
    refuseMisspelledMembers(envelope, batchMembers, 'A batch');
    const wait = readSyncLevel(envelope.sync_level, 'propose');
    if (scanned.entries.length === 0) throw noOperations();
    const at = this.#stamp();
    const repeated = repeatedWrites(request, [lease], at);
    const writes = repeated ? [] : await this.#rangeWrites(table, body, scanned, { section: 0, at });
    const parts = [{ table, lease, writes }];
    const by = { caller, isEnriched: wait === 'enrichments' };
    const applied = repeated ?? (await this.#commit(parts, [], request, at, by));
    return await settle(parts, applied, wait, batchCounts(applied), this.#clock);
  }

  /** Batches of several tables as one write. */
  multiBatch(body: Uint8Array, caller: Caller, idempotencyKey?: string) {
    const run = (request: NamedRequest) => this.#writeTables(body, caller, request, 'batches');
    return this.#once('batches', body, { caller, idempotencyKey }, run);
  }

  /** As `multiBatch`, if no document of the read set has changed. Fails with `transaction_conflict`. */
  commit(body: Uint8Array, caller: Caller, idempotencyKey?: string) {
    const run = (request: NamedRequest) => this.#writeTables(body, caller, request, 'commit');
    return this.#once('commit', body, { caller, idempotencyKey }, run);
  }

  /** As `commit`; of a key that is both deleted and inserted the document is deleted first, and is then a new one. */
  commitTransaction(body: Uint8Array, caller: Caller, idempotencyKey: string) {
    const run = (request: NamedRequest) => this.#writeTables(body, caller, request, 'transaction');
    return this.#once('transaction', body, { caller, idempotencyKey }, run);
  }

  /**
   * Refuses what a commit of this body would refuse whatever is stored: its shape, keys, documents that do not match their
   * schema, tables that are not there or not the caller's. `read_set` may be absent. Writes nothing.
   */
  async check(body: Uint8Array, caller: Caller): Promise<TablesRequest> {
    const request = await readTablesRequest(body, 'optional');
    for (const [section, name] of request.scanned.sections.entries()) {
      const table = this.#tables.get(name, caller, 'write');
      await this.#frame(table, body, sectionEntries(request.scanned, section), this.#stamp());
    }
    for (const item of request.readSet) readAssertion(this.#tables, item, caller);
    return request;
  }

  /** Makes a range of keys equal to the records of a page. */
  merge(tableName: string, body: Uint8Array, caller: Caller, idempotencyKey?: string): Promise<MergeResponse> {
    const run = (request: NamedRequest) => this.#merge(tableName, body, caller, request);
    return this.#once(`merge ${tableName}`, body, { caller, idempotencyKey }, run);
  }

  async #merge(tableName: string, body: Uint8Array, caller: Caller, request: NamedRequest): Promise<MergeResponse> {
    const started = this.#clock.monotonicMs();
    const table = this.#tables.get(tableName, caller, 'write');
    using _columns = await this.#keepColumns([table]);
    using lease = await table.lease();
    const scanned = await scanWrite(body, 'merge');
    const envelope = readMergeEnvelope(scanned.envelopeJson);
    checkRecords(envelope, scanned.entries.length);
    const at = this.#stamp();
    const frame = await this.#frame(table, body, sectionEntries(scanned, 0), at);
    const { writes, window } = await planMerge(frame, table, envelope);
    const parts = [{ table, lease, writes }];
    const by = { caller, isEnriched: envelope.wait === 'enrichments' && !envelope.dryRun };
    const applied = repeatedWrites(request, [lease], at) ?? (await this.#commit(parts, [], request, at, by));
    const outcome = await settle(parts, applied, envelope.wait, undefined, this.#clock);
    const tookMs = this.#clock.monotonicMs() - started;
    return renderMerge(applied, window, envelope.dryRun, tookMs, outcome.error);
  }

  /** Runs a request, one of each key at a time. `operation` tells requests with equal bodies apart. */
  #once<Result>(
    operation: string,
    body: Uint8Array,
    { caller, idempotencyKey }: { caller: Caller; idempotencyKey: string | undefined },
    work: (request: NamedRequest) => Promise<Result>,
  ): Promise<Result> {
    const { requestId } = caller;
    const run = (request: NamedRequest) =>
      work(request).catch((error: unknown) => {
        throw shownViolation(error, caller);
      });
    if (idempotencyKey === undefined) return run({ requestId });
    // Under other row filters it is another request: the counts of its answer may tell of what these hide.
    const filters = caller.rowFilter === undefined ? '' : `${JSON.stringify(caller.rowFilter)}\0`;
    const bodyHash = new Bun.CryptoHasher('sha256').update(`${operation}\0${filters}`).update(body).digest();
    const client = ownerOf(caller.principal);
    const key = { client, key: idempotencyKey, bodyHash };
    return this.#keyed.run(`${client}\0${idempotencyKey}`, () => run({ requestId, key }));
  }

  async #writeTables(
    body: Uint8Array,
    caller: Caller,
    request: NamedRequest,
    kind: 'batches' | 'commit' | 'transaction',
  ) {
    const { scanned, wait, readSet } = await readTablesRequest(body, kind === 'batches' ? 'none' : 'required');
    // A read set alone asks whether what was read still stands.
    if (scanned.entries.length === 0 && readSet.length === 0) throw noOperations();
    const at = this.#stamp();
    const tables = scanned.sections.map((name) => this.#tables.get(name, caller, 'write'));
    using _columns = await this.#keepColumns(tables);
    using leases = new DisposableStack();
    const held = await leaseTables(tables, leases);
    const parts = held.map((lease, place): TableWrites => {
      return { table: must(tables[place], 'a lease for each table'), lease, writes: [] };
    });
    const repeated = repeatedWrites(request, held, at);
    for (const [section, part] of parts.entries()) {
      const putsDeleted = kind === 'transaction';
      part.writes = repeated ? [] : await this.#rangeWrites(part.table, body, scanned, { section, at, putsDeleted });
    }
    const assertions = readSet.map((item) => readAssertion(this.#tables, item, caller));
    const by = { caller, isEnriched: wait === 'enrichments' };
    const applied = repeated ?? (await this.#commit(parts, assertions, request, at, by));
    const counts: Record<string, BatchCounts> = {};
    for (const { table } of parts) {
      const own = new Set(table.ranges.map(({ rangeId }) => rangeId));
      counts[table.name] = batchCounts(applied.filter((each) => own.has(each.rangeId)));
    }
    return await settle(parts, applied, wait, counts, this.#clock);
  }

  async #rangeWrites(
    table: Table,
    body: Uint8Array,
    scanned: ScannedWrite,
    { section, at, putsDeleted = false }: { section: number; at: Stamp; putsDeleted?: boolean },
  ) {
    const entries = sectionEntries(scanned, section);
    if (entries.length === 0) return [];
    const frames = await splitFrame(await this.#frame(table, body, entries, at, putsDeleted), table.ranges);
    return frames.flatMap((frame, index): RangeWrite[] => {
      const rangeId = must(table.ranges[index], 'a frame for each range').rangeId;
      return frame ? [{ rangeId, frame, ttlField: table.ttlField }] : [];
    });
  }

  #frame(table: Table, body: Uint8Array, entries: Uint32Array, at: Stamp, putsDeleted = false) {
    const options: FrameOptions = {
      putsDeleted,
      timestampMs: at.timeMs,
      ttlField: table.ttlField,
      keyBytesMax: limits.keyBytesMax,
    };
    const definitions = table.indexes.map(({ definition }) => definition);
    const makesEdges = graphsAmong(definitions).some(({ edgeTypes }) => edgeTypes.some(({ field }) => field));
    if (makesEdges || holdsVectors(entries) || holdsEdges(entries))
      options.vectorIndexes = definitions.map(writtenVectorsOf);
    return buildFrame(body, entries, options, table.compiledSchema);
  }

  /** Before the leases: who changes columns waits for leases while it keeps writes out. */
  #keepColumns(tables: readonly Table[]): Promise<Disposable> | undefined {
    return tables.some(isRelationalTable) ? this.#columns.share() : undefined;
  }

  /**
   * The writes with what is made of their documents; whoever fails here has written nothing. What transforms will leave is
   * foreseen from what is stored, so that the commit has to find that as it was read. Rows of relational tables are checked.
   * Frames are copies where nothing was added to them: one is given away with each try of a commit.
   */
  async #precompute(parts: readonly TableWrites[], { caller, isEnriched }: WrittenBy, at: Stamp) {
    const read: ReadAssertion[] = [];
    const enriched: TableWrites[] = [];
    for (const part of parts) {
      const ranges = rangesOf([part]);
      const isChecked = isRelationalTable(part.table);
      const writes: RangeWrite[] = [];
      for (const write of part.writes) {
        const { stored } = must(ranges.get(write.rangeId), 'a range that is written');
        if (!write.frame) writes.push(write);
        else if (!isChecked && !isEnriched) writes.push({ ...write, frame: write.frame.slice() });
        else {
          const rows = readFrame(write.frame);
          const foreseen = await foreseeTransforms(rows, stored, part.table, at);
          const { documents } = foreseen;
          if (isChecked) await checkRows(part.table.compiledSchema, rowsLeft(rows, documents));
          const left = { transformed: documents, expiredAtOrBeforeMs: part.table.expiredAtOrBeforeMs(at.timeMs) };
          const made = isEnriched && this.#enrichment.precompute(write.frame, stored, part.table, caller, left);
          const frame = made ? await made : write.frame;
          if (isChecked || frame !== write.frame) read.push(...foreseen.read);
          writes.push({ ...write, frame: frame === write.frame ? frame.slice() : frame });
        }
      }
      enriched.push({ ...part, writes });
    }
    return { enriched, read };
  }

  /** Commits, where asked with what is made of the documents, and only what the caller's row filters permit. */
  #commit(
    parts: TableWrites[],
    readSet: ReadAssertion[],
    request: NamedRequest,
    at: Stamp,
    by: WrittenBy,
  ): Promise<WrittenRange[]> {
    const checked = parts.filter(transformsRows).map(({ table }) => table.name);
    if (by.caller.rowFilter === undefined && !by.isEnriched && checked.length === 0)
      return this.#append(parts, readSet, request, at, by.caller);
    const commit = () => this.#commitForeseen(parts, readSet, request, at, by);
    // Names in order, so that no two writes wait for one another.
    const inTurn = checked.sort().reduceRight((run, name) => () => this.#transforms.run(name, run), commit);
    return inTurn();
  }

  /** Commits what was foreseen, once more where others have changed the documents meanwhile. */
  async #commitForeseen(
    parts: TableWrites[],
    readSet: ReadAssertion[],
    request: NamedRequest,
    at: Stamp,
    by: WrittenBy,
  ): Promise<WrittenRange[]> {
    const { caller, isEnriched } = by;
    const triesMax = isEnriched ? enrichedTriesMax : checkedTriesMax;
    using permitted =
      caller.rowFilter && (await PermittedWrites.open(parts, readSet, { tables: this.#tables, caller, at }));
    for (let attempt = 1; ; attempt += 1) {
      const judged = permitted ? await permitted.check(parts, readSet) : { parts, read: readSet };
      const { enriched, read } = await this.#precompute(judged.parts, by, at);
      try {
        return await this.#append(enriched, [...judged.read, ...read], request, at, caller);
      } catch (error) {
        const isStale = isConflictOf(error, read) || permitted?.isStale(error);
        if (attempt === triesMax || !isStale) throw permitted ? permitted.shown(error) : error;
      }
    }
  }

  async #append(
    parts: TableWrites[],
    readSet: ReadAssertion[],
    request: NamedRequest,
    at: Stamp,
    caller: Caller,
  ): Promise<WrittenRange[]> {
    const ranges = rangesOf(parts);
    const written = new Set(parts.flatMap(({ writes }) => writes.map(({ rangeId }) => rangeId)));
    await this.#waitForRoom([...ranges.values()].filter((range) => written.has(range.rangeId) && range.isBehind));
    const writes = parts.flatMap(({ writes, table, lease }) => {
      const graphs = graphWritesOf(table, lease.ranges);
      if (!graphs) return writes;
      return writes.map((write) => ({ ...write, graphs: graphsOfWrite(graphs, write, lease.ranges) }));
    });
    if (writes.length === 0 && readSet.length === 0) return [];
    using related = new DisposableStack();
    const constrained = await this.#constrained(parts, caller, related);
    const tables = parts.map(({ table, lease: { ranges } }) => ({ table, ranges }));
    const appended = appendToTrees(this.#log, { writes, readSet, ...constrained, ...request, ...at }, tables);
    const all = await appended.catch((error: unknown) => {
      const [only, ...others] = writes;
      const table = parts.map((part) => part.table.name).join(', ');
      throw withDetails(error, { table, ...(only && others.length === 0 ? { range_id: only.rangeId } : {}) });
    });
    // Rows that have followed in tables that the request does not name count only where they are still to come.
    const applied = all.filter(({ rangeId, isLater }) => ranges.has(rangeId) || isLater);
    this.#observer.wrote(batchCounts(applied.filter(({ repeats }) => !repeats)));
    return applied.map(({ rangeId, counts, images, repeats, isLater }) => {
      const { lastSequence } = images ?? repeats ?? {};
      return { rangeId, counts, firstSequence: images?.firstSequence, lastSequence, isLater };
    });
  }

  /** The rules of relational tables, whose ranges are held open while the write is checked by them. */
  async #constrained(
    parts: readonly TableWrites[],
    caller: Caller,
    held: DisposableStack,
  ): Promise<Pick<WriteRequest, 'constrained'>> {
    const written = parts.flatMap(({ table, writes }) => (writes.length > 0 ? [table] : []));
    const tables = constrainedTables(written, () => this.#tables.all());
    if (tables.length === 0) return {};
    for (const table of tables) held.use(await table.lease());
    return { constrained: tables.map((table) => constraintsOf(table, caller)) };
  }

  /** Paces writes while indexes are too far behind: a client that writes as fast as it can is slowed down, not refused. */
  async #waitForRoom(behind: readonly IndexedRange[]): Promise<void> {
    if (behind.length === 0) return;
    this.#observer.paced();
    const late = new AbortController();
    const cancel = this.#clock.after(this.#limits.backlogWaitMs, () => late.abort());
    try {
      await Promise.all(behind.map((range) => range.whenKeepsUp(late.signal)));
    } finally {
      cancel();
    }
    if (!late.signal.aborted) return;
    this.#observer.refused();
    const message = 'indexing is behind by more than its bound; send the request again after the given time';
    throw new ServiceError('backpressure', message, { retryAfterMs: 250 });
  }

  #stamp(): Stamp {
    const timeMs = this.#clock.nowMs();
    return { timeMs, timestamp: new Date(timeMs).toISOString() };
  }
}

/** The caller that writes, and whether with what is made of the documents. */
interface WrittenBy {
  readonly caller: Caller;
  readonly isEnriched: boolean;
}

/** A request and, if it has one, its key. */
type NamedRequest = Pick<WriteRequest, 'requestId' | 'key'>;

/** The answer that the request got when it was sent first, wherever in the tables that it names its answer is kept. */
function repeatedWrites({ key }: NamedRequest, leases: TableLease[], at: Stamp): WrittenRange[] | undefined {
  if (!key) return undefined;
  for (const { stored } of leases.flatMap(({ ranges }) => ranges)) {
    const found = stored.answers.find(key, at.timeMs);
    if (found) return [...found];
  }
  return undefined;
}

interface Stamp {
  timeMs: number;
  timestamp: string;
}

function noOperations(): ServiceError {
  const message = 'the request holds no operations; give "inserts", "deletes" or "transforms"';
  return new ServiceError('invalid_request', message);
}
