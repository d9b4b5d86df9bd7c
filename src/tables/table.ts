import type { TableSchema } from '../engine/table-schema.ts';
import { mappedSchemaOf } from '../index-kinds/all-kinds.ts';
import type { ArtifactDefinition } from '../index-kinds/configuration/artifact-config.ts';
import type { RangeFacts } from '../indexing/at-rest/range-facts.ts';
import type { IndexedRange } from '../indexing/indexed-range.ts';
import type { RangeLease, RangePool } from '../indexing/range-pool.ts';
import { must } from '../lib/assert.ts';
import { expiredAtOrBeforeMs } from '../lib/ttl.ts';
import { ServiceError, withDetails } from '../protocol/service-error.ts';
import type { TextIndexState } from '../query/searchable-table.ts';
import type { RangeRecord } from '../storage/catalog/catalog-records.ts';
import type { RangeTtl } from '../storage/write-request.ts';
import { isValuesOnly } from './indexes/index-record.ts';
import type { TableIndex } from './indexes/table-index.ts';
import { type TtlPolicy, ttlField, ttlPolicy } from './schema/document-schema.ts';
import type { TableSettings, TableTotals, TableView } from './table-view.ts';
import { intervalOf } from './writes/frame-split.ts';

/** All ranges of a table, held open together. */
export interface TableLease extends Disposable {
  readonly ranges: readonly IndexedRange[];
}

/** A table that exists: its description as of now, and the way to its ranges. */
export class Table implements TableView {
  readonly id: number;
  readonly name: string;
  readonly ranges: readonly RangeRecord[];
  readonly #pool: RangePool;
  #settings: TableSettings;
  #indexes: TableIndex[];
  #ttl: TtlPolicy | undefined;
  #closing = new AbortController();
  /** Those who wait for a text index that is coming. */
  readonly #textWaits = new Set<() => void>();
  /** Why there are no more leases. */
  #ended: 'dropped' | 'replaced' | undefined;
  /** Nobody but the restore that makes it knows of the table. */
  readonly isStaged: boolean;
  /** The enrichments of its documents, without the vectors of indexes; each behind the one that it is made from. */
  artifacts: readonly ArtifactDefinition[];
  /** Validates writes. */
  compiledSchema: TableSchema;

  constructor(parts: {
    id: number;
    name: string;
    settings: TableSettings;
    ranges: RangeRecord[];
    indexes: TableIndex[];
    artifacts: readonly ArtifactDefinition[];
    compiledSchema: TableSchema;
    pool: RangePool;
    isStaged?: boolean;
  }) {
    this.id = parts.id;
    this.isStaged = parts.isStaged === true;
    this.name = parts.name;
    this.ranges = parts.ranges;
    this.#settings = parts.settings;
    this.#indexes = parts.indexes;
    this.artifacts = parts.artifacts;
    this.#pool = parts.pool;
    this.#ttl = ttlOf(parts.settings);
    this.compiledSchema = parts.compiledSchema;
  }

  get settings(): TableSettings {
    return this.#settings;
  }

  set settings(settings: TableSettings) {
    this.#settings = settings;
    this.#ttl = ttlOf(settings);
  }

  get indexes(): readonly TableIndex[] {
    return this.#indexes;
  }

  set indexes(indexes: TableIndex[]) {
    this.#indexes = indexes;
    if (this.textIndex !== 'coming') this.#endTextWaits();
  }

  /** Those that users see: what stands in for a dropped text index is not among them. */
  get listedIndexes(): readonly TableIndex[] {
    const isHidden = ({ role, definition }: TableIndex) =>
      role !== 'extra' && (this.#settings.textIndexDropped === true || isValuesOnly(mappedSchemaOf(definition)));
    return this.#indexes.filter((index) => !isHidden(index));
  }

  get textIndex(): TextIndexState {
    if (this.#settings.textIndexDropped) return 'dropped';
    return isValuesOnly(mappedSchemaOf(this.servingIndex.definition)) ? 'coming' : 'serving';
  }

  /** Resolves when no text index is coming any more, when the table closes, or the signal fires. */
  textServes(signal: AbortSignal): Promise<void> {
    if (this.textIndex !== 'coming' || signal.aborted) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#textWaits.add(resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
    return promise.finally(() => this.#textWaits.delete(resolve));
  }

  #endTextWaits(): void {
    for (const resolve of this.#textWaits) resolve();
  }

  get servingIndex(): TableIndex {
    return must(
      this.#indexes.find((index) => index.role === 'serving'),
      'a table always has a serving full-text index',
    );
  }

  /** Undefined as well while the TTL bases of stored documents are read again. */
  get ttlDurationMs(): number | undefined {
    return this.#ttl?.durationMs;
  }

  /** Member that holds a document's TTL base. */
  get ttlField(): string {
    return ttlField(this.#settings.schema);
  }

  get rangeTtl(): RangeTtl {
    return { durationMs: this.ttlDurationMs, field: this.ttlField };
  }

  /** Documents whose base time is at or before this have expired; undefined when they live for ever. */
  expiredAtOrBeforeMs(nowMs: number): number | undefined {
    return expiredAtOrBeforeMs(nowMs, this.#ttl?.durationMs);
  }

  /** Aborted when the table is dropped or the server stops: background work lets go of its ranges. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    this.#closing.abort();
    this.#endTextWaits();
  }

  /** Why it gives out no more leases; undefined for one that does. */
  get ended(): 'dropped' | 'replaced' | undefined {
    return this.#ended;
  }

  /** Gives out no more leases. */
  drop(): void {
    this.#ended = 'dropped';
    this.close();
  }

  /** Gives out no more leases, because another table takes its name. */
  replace(): void {
    this.#ended = 'replaced';
    this.close();
  }

  /** Takes `replace` back. What ran in the background has to be started again. */
  keep(): void {
    this.#ended = undefined;
    this.#closing = new AbortController();
  }

  #refusal(): ServiceError {
    if (this.#ended === 'dropped') return tableNotFound(this.name);
    const message = `table "${this.name}" is being replaced by a restore; send the request again after the given time`;
    return new ServiceError('unavailable', message, { retryAfterMs: 100 });
  }

  /**
   * Opens what is not open yet. Use with `using`: the ranges stay open until the lease is disposed. The holder of a lease
   * must not wait for a change of the table: a drop waits for all leases. Fails with `table_not_found` after a drop.
   */
  async lease(): Promise<TableLease> {
    if (this.#ended !== undefined) throw this.#refusal();
    const leases: RangeLease[] = [];
    try {
      for (const range of this.ranges) leases.push(await this.#pool.lease(range.rangeId));
    } catch (error) {
      for (const lease of leases) lease[Symbol.dispose]();
      throw withDetails(error, { table: this.name });
    }
    return {
      ranges: leases.map((lease) => lease.range),
      [Symbol.dispose]: () => {
        for (const lease of leases) lease[Symbol.dispose]();
      },
    };
  }

  /** As `lease`, at once; undefined while a range is not open. */
  leaseOpen(): TableLease | undefined {
    if (this.#ended !== undefined) throw this.#refusal();
    const leases: RangeLease[] = [];
    const release = () => {
      for (const lease of leases) lease[Symbol.dispose]();
    };
    for (const { rangeId } of this.ranges) {
      const lease = this.#pool.leaseOpen(rangeId);
      if (lease === undefined) {
        release();
        return undefined;
      }
      leases.push(lease);
    }
    return { ranges: leases.map(({ range }) => range), [Symbol.dispose]: release };
  }

  rangeOf(key: string): number {
    return intervalOf(key, this.ranges);
  }

  /** A lease of the range that holds a key, under the rules of `lease`; a promise of one that is not open. */
  leaseOf(key: string): RangeLease | Promise<RangeLease> {
    if (this.#ended !== undefined) throw this.#refusal();
    const { rangeId } = must(this.ranges[this.rangeOf(key)], 'intervals cover every key');
    return this.#pool.leaseOpen(rangeId) ?? this.#opened(rangeId);
  }

  async #opened(rangeId: number): Promise<RangeLease> {
    try {
      return await this.#pool.lease(rangeId);
    } catch (error) {
      throw withDetails(error, { table: this.name });
    }
  }

  /** Opens one range for upkeep, under the rules of `lease`. */
  async leaseForUpkeep(rangeId: number): Promise<RangeLease> {
    if (this.#ended !== undefined) throw this.#refusal();
    return this.#pool.lease(rangeId, 'upkeep');
  }

  /**
   * The facts of each range now, in their order; undefined for one that cannot be opened. A closed range stays closed
   * when what it held at its closing is known. Fails with `table_not_found` after a drop.
   */
  async facts(): Promise<(RangeFacts | undefined)[]> {
    const facts: (RangeFacts | undefined)[] = [];
    for (const { rangeId } of this.ranges) facts.push(this.#pool.known(rangeId) ?? (await this.#factsOf(rangeId)));
    return facts;
  }

  /** Whether a range is open, or it is not known what the closed ones hold. */
  get isInUse(): boolean {
    return this.ranges.some(({ rangeId }) => this.#pool.knownClosed(rangeId) === undefined);
  }

  /** Least TTL base in a closed range, milliseconds since 1970; `-Infinity` when only a look can tell. */
  oldestTtlBaseMs(rangeId: number): number {
    const oldest = this.#pool.knownClosed(rangeId)?.oldestTtlBaseMs;
    if (oldest === undefined) return Number.NEGATIVE_INFINITY;
    return oldest ?? Number.POSITIVE_INFINITY;
  }

  async #factsOf(rangeId: number): Promise<RangeFacts | undefined> {
    if (this.#ended !== undefined) throw this.#refusal();
    return this.#pool.facts(rangeId).catch((error: unknown) => {
      if (this.#ended !== undefined) throw this.#refusal();
      if (error instanceof ServiceError && error.code === 'data_corrupted') return undefined;
      throw error;
    });
  }

  async totals(): Promise<TableTotals> {
    const totals: TableTotals = { documents: 0, bytes: 0, diskBytes: 0, unreadableRanges: [] };
    for (const [at, facts] of (await this.facts()).entries()) {
      totals.documents += facts?.documents ?? 0;
      totals.bytes += facts?.bytes ?? 0;
      totals.diskBytes += facts?.diskBytes ?? 0;
      const rangeId = this.ranges[at]?.rangeId;
      if (!facts && rangeId !== undefined) totals.unreadableRanges.push(rangeId);
    }
    return totals;
  }
}

export function tableNotFound(name: string): ServiceError {
  return new ServiceError('table_not_found', `there is no table ${JSON.stringify(name)}`);
}

function ttlOf({ schema, ttlRewrite }: TableSettings): TtlPolicy | undefined {
  return ttlRewrite === undefined ? ttlPolicy(schema) : undefined;
}
