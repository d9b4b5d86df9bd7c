import type { AccessLevel } from '../access/grants.ts';
import { type Caller, requireTable, requireWholeTable, seesTable } from '../access/principal.ts';
import { limits } from '../config/limits.ts';
import { namesMatching } from '../engine/name-pattern.ts';
import { TableSchema as CompiledSchema } from '../engine/table-schema.ts';
import type { Enrichment } from '../enrichment/enrichment.ts';
import type { CheckedIndexConfig } from '../index-kinds/all-kinds.ts';
import type { ArtifactDefinition } from '../index-kinds/configuration/artifact-config.ts';
import { primaryIndexConfig } from '../index-kinds/configuration/index-config.ts';
import { inlineOf } from '../index-kinds/configuration/index-enrichments.ts';
import { factsOfEmptyRange } from '../indexing/at-rest/range-facts.ts';
import type { RangePool } from '../indexing/range-pool.ts';
import type { JobRunner } from '../jobs/job-runner.ts';
import { assert, must } from '../lib/assert.ts';
import type { Clock } from '../lib/clock.ts';
import { KeyedMutex } from '../lib/concurrency/keyed-mutex.ts';
import { ReadWriteLock } from '../lib/concurrency/read-write-lock.ts';
import type { CreateTableRequest, TableSchema } from '../protocol/database/tables.ts';
import { checkTableName } from '../protocol/names.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { RangeLog } from '../replication/range-log.ts';
import type { JobChange, TableRecord } from '../storage/catalog/catalog-records.ts';
import type { Storage } from '../storage/open-storage.ts';
import type { NewTable } from '../storage/storage-calls.ts';
import { newArtifact, readArtifactRecords } from './artifacts/artifact-record.ts';
import { overArtifact } from './artifacts/artifact-rules.ts';
import { newIndex, readIndexRecords } from './indexes/index-record.ts';
import type { TableIndex } from './indexes/table-index.ts';
import { initialIntervals } from './initial-ranges.ts';
import { checkColumnChange } from './relational/column-change.ts';
import { tablesNaming } from './relational/constrained-tables.ts';
import { checkRelationalIndex, isRelational, relationalColumns } from './relational/relational-schema.ts';
import { checkRestoredRows, hasReferences } from './relational/restored-rows.ts';
import { shownViolation } from './relational/shown-violation.ts';
import { nextSchema, openSchema } from './schema/document-schema.ts';
import { SchemaChange, type SchemaCondition } from './schema/schema-change.ts';
import { Table, tableNotFound } from './table.ts';
import { checkCreation, checkInline, namingIndex, readExtra } from './table-creation.ts';
import type { TableLookup } from './table-lookup.ts';
import type { TableSettings } from './table-view.ts';
import { TtlRewrite } from './upkeep/ttl-rewrite.ts';

interface TableServiceDeps {
  readonly storage: Storage;
  readonly log: RangeLog;
  readonly pool: RangePool;
  readonly jobs: JobRunner;
  readonly clock: Clock;
  readonly enrichment: Enrichment;
  readonly defaultShards: number;
  onServiceFailed(service: string, error: unknown, attempt: number): void;
}

/** How a staged table is published. */
interface Publication {
  readonly replaces: boolean;
  isRestored(name: string): boolean;
  /** Made when the transaction begins that notes it. */
  job(): JobChange;
  readonly signal: AbortSignal;
}

/** Creates, finds, changes and drops tables. What it knows is the catalog; changes of one table run one at a time. */
export class TableService implements TableLookup {
  /** Held while the columns of a relational table change, shared by who writes rows of such tables. */
  readonly columns = new ReadWriteLock();
  readonly #storage: Storage;
  readonly #pool: RangePool;
  readonly #clock: Clock;
  readonly #enrichment: Enrichment;
  readonly #defaultShards: number;
  readonly #changes = new KeyedMutex();
  readonly #tables = new Map<string, Table>();
  readonly #owners = new Map<number, Table>();
  readonly #staged = new Map<string, Table>();
  readonly #schemaChange: SchemaChange;
  #tablesComing = 0;

  constructor(deps: TableServiceDeps) {
    this.#storage = deps.storage;
    this.#pool = deps.pool;
    this.#clock = deps.clock;
    this.#enrichment = deps.enrichment;
    this.#defaultShards = deps.defaultShards;
    this.#schemaChange = new SchemaChange({
      storage: deps.storage,
      changes: this.#changes,
      clock: deps.clock,
      submit: (job) => deps.jobs.submit(job),
      onServiceFailed: deps.onServiceFailed,
    });
    const rewrite = new TtlRewrite({
      findTable: (tableId) => this.all().find(({ id }) => id === tableId),
      log: deps.log,
      clock: deps.clock,
      finish: (table, token) => this.#schemaChange.finishRewrite(table, token),
    });
    deps.jobs.handle(rewrite);
  }

  /** Reads the catalog, and takes up the rebuilds that were under way. */
  async load(): Promise<void> {
    for (const record of this.#storage.catalog.tables()) {
      if (record.state !== 'live') continue;
      const settings = JSON.parse(record.record) as TableSettings;
      const table = this.#adopt(record, settings, await CompiledSchema.compile(settings.schema));
      this.#schemaChange.resume(table);
    }
  }

  /** Every table, sorted by name. */
  all(): Table[] {
    return [...this.#tables.values()].sort((left, right) => (left.name < right.name ? -1 : 1));
  }

  /** Those that the caller may know of. */
  list(prefix: string | undefined, pattern: string | undefined, caller: Caller): Table[] {
    const found = this.all().filter(({ name }) => name.startsWith(prefix ?? '') && seesTable(caller, name));
    if (pattern === undefined) return found;
    const matching = new Set(
      namesMatching(
        pattern,
        found.map((table) => table.name),
      ),
    );
    return found.filter((table) => matching.has(table.name));
  }

  get(name: string, caller: Caller, level: AccessLevel): Table {
    const table = this.#require(name);
    requireTable(caller, name, level, tableNotFound);
    return table;
  }

  /** The table that a range belongs to. */
  ownerOf(rangeId: number): Table {
    return must(this.findOwner(rangeId), 'every range belongs to a table');
  }

  /** As `ownerOf`; undefined when its table was dropped. */
  findOwner(rangeId: number): Table | undefined {
    return this.#owners.get(rangeId);
  }

  async create(name: string, request: CreateTableRequest, caller: Caller): Promise<Table> {
    requireTable(caller, name, 'admin');
    checkTableName(name);
    const shards = request.num_shards ?? this.#defaultShards;
    checkCreation(request, shards);
    const schema = nextSchema(request.schema ?? openSchema, undefined);
    const read = Object.entries(request.indexes ?? {}).map(([index, config]) => readExtra(index, config));
    const settings: TableSettings = {
      schema,
      ...(request.description === undefined ? {} : { description: request.description }),
    };
    if (this.#tables.has(name)) throw alreadyExists(name);
    this.#checkRelational(name, schema, read, caller);
    const prepared: CheckedIndexConfig[] = [];
    for (const config of read) prepared.push(await this.#prepareExtra(config, caller));
    checkInline(prepared);
    const extras = prepared.map((config) => overArtifact(config, prepared.flatMap(inlineOf)));
    const namesOthers = relationalColumns(schema).some(({ references }) => references);
    using _columns = namesOthers ? await this.columns.exclude() : undefined;
    return await this.#changes.run(name, async () => {
      if (this.#tables.has(name)) throw alreadyExists(name);
      // A table that it names may have been dropped meanwhile.
      this.#checkRelational(name, schema, read, caller);
      using _place = this.#takePlace();
      const compiled = await CompiledSchema.compile(schema);
      try {
        const enrichments = extras.flatMap((config) => inlineOf(config).map((each) => newArtifact(each, config.name)));
        const record = await this.#storage.catalog.createTable({
          name,
          createdMs: this.#clock.nowMs(),
          record: JSON.stringify(settings),
          ranges: initialIntervals(shards),
          indexes: [
            newIndex(primaryIndexConfig(0), schema, 'serving'),
            ...extras.map((config) => newIndex(config, schema, 'extra')),
          ],
          enrichments,
        });
        const table = this.#adopt(record, settings, compiled);
        const indexNames = table.indexes.map((index) => index.name);
        for (const { rangeId, firstSequence } of table.ranges) {
          const facts = factsOfEmptyRange(firstSequence, this.#storage.rangeDiskBytes(rangeId), indexNames);
          this.#pool.created(rangeId, facts);
        }
        return table;
      } catch (error) {
        compiled.close();
        throw error;
      }
    });
  }

  /** Counts a table that is being made. Fails with `limit_exceeded` where there are too many with it. */
  #takePlace(): Disposable {
    if (this.#tables.size + this.#tablesComing >= limits.tablesMax) {
      throw new ServiceError('limit_exceeded', `a node holds at most ${limits.tablesMax} tables`);
    }
    this.#tablesComing += 1;
    const leave = () => {
      this.#tablesComing -= 1;
    };
    return { [Symbol.dispose]: leave };
  }

  /** Checks that the tables exist that a relational table names. */
  #checkRelational(name: string, schema: TableSchema, indexes: readonly CheckedIndexConfig[], caller: Caller): void {
    for (const config of indexes) if (isRelational(schema)) checkRelationalIndex(config);
    for (const { name: column, references } of relationalColumns(schema)) {
      if (!references || references.table === name) continue;
      // A reference tells which keys there are, and keeps rows from being deleted.
      const named = this.get(references.table, caller, 'write');
      requireWholeTable(caller, named.name, '"references"');
      if (isRelational(named.settings.schema)) continue;
      const message = `column "${column}" names the table "${named.name}", which is not relational`;
      throw new ServiceError('invalid_schema', message);
    }
  }

  #prepareExtra(config: CheckedIndexConfig, caller: Caller): Promise<CheckedIndexConfig> {
    return this.#enrichment.prepare(config, caller).catch((error: unknown) => {
      throw namingIndex(config.name, error);
    });
  }

  /** Removes the table for new requests, lets those under way finish, then drops its data. */
  async drop(name: string, caller: Caller): Promise<void> {
    const { settings } = this.get(name, caller, 'admin');
    using _columns = isRelational(settings.schema) ? await this.columns.share() : undefined;
    await this.#changes.run(name, async () => {
      const table = this.#require(name);
      const [naming] = tablesNaming(name, this.all());
      if (naming) {
        const message = `rows of "${naming.name}" name rows of "${name}": drop that table first`;
        const violation = new ServiceError('constraint_violation', message, {
          details: { table: name, naming: naming.name },
        });
        throw shownViolation(violation, caller);
      }
      this.#tables.delete(name);
      try {
        await this.#discard(table, (drop) => this.#storage.access.dropping(name, drop));
      } catch (error) {
        this.#tables.set(name, table);
        this.#schemaChange.resume(table);
        throw error;
      }
    });
  }

  /** A table that the catalog could not drop stays as it was; what ran in the background has to be started again. */
  async #discard(table: Table, around: (drop: () => Promise<void>) => Promise<void>): Promise<void> {
    table.drop();
    try {
      const heads = await this.#discardRanges(table);
      await around(() => this.#storage.catalog.dropTable(table.id, this.#clock.nowMs(), heads));
    } catch (error) {
      table.keep();
      throw error;
    }
    this.#forget(table);
  }

  /** Waits for those who use the ranges and closes them; returns their last sequences, where they are known. */
  async #discardRanges(table: Table): Promise<Map<number, number>> {
    const heads = new Map<number, number>();
    for (const { rangeId } of table.ranges) {
      const head = await this.#pool.discard(rangeId);
      if (head !== undefined) heads.set(rangeId, head);
    }
    return heads;
  }

  #forget(table: Table): void {
    for (const { rangeId } of table.ranges) {
      this.#owners.delete(rangeId);
      this.#storage.forgetRange(rangeId);
    }
    table.compiledSchema.close();
  }

  /** Replaces the schema; returns when the change is durable, while full text may still be rebuilt behind it. */
  async updateSchema(
    name: string,
    requested: TableSchema,
    caller: Caller,
    condition?: SchemaCondition,
  ): Promise<Table> {
    const table = this.get(name, caller, 'admin');
    if (!isRelational(requested) || !isRelational(table.settings.schema)) {
      await this.#schemaChange.apply(table, requested, condition);
      return table;
    }
    const next = nextSchema(requested, table.settings.schema);
    this.#checkRelational(name, next, [], caller);
    using _columns = await this.columns.exclude();
    await checkColumnChange(table, next, (named) => this.#require(named), caller.signal);
    await this.#schemaChange.apply(table, requested, condition);
    return table;
  }

  /** Checks that a table can have indexes and enrichments of another server, as `Enrichment.check` says. */
  checkMade(indexes: readonly TableIndex[], artifacts: readonly ArtifactDefinition[]): void {
    this.#enrichment.check(
      indexes.map(({ definition }) => definition),
      artifacts,
    );
  }

  /** Makes a table that nobody sees before it is published. */
  async stage(table: NewTable): Promise<Table> {
    return this.#adoptStaged(await this.#storage.catalog.createTable(table));
  }

  /** A staged table of an earlier attempt; undefined when there is none of the name. */
  async findStaged(name: string): Promise<Table | undefined> {
    const record = this.#storage.catalog.table(name);
    return this.#staged.get(name) ?? (record?.state === 'staged' ? this.#adoptStaged(record) : undefined);
  }

  /** Gives a range of a staged table the files in a folder, as `Storage.adoptRange` says. */
  async adoptImage(staged: Table, rangeId: number, folder: string): Promise<void> {
    assert(this.#staged.get(staged.name) === staged, 'files for a table that is not staged');
    await this.#pool.close(rangeId);
    await this.#storage.adoptRange(rangeId, folder);
  }

  /** The names of all staged tables. */
  stagedNames(): string[] {
    return this.#storage.catalog.tables().flatMap(({ state, name }) => (state === 'staged' ? [name] : []));
  }

  async dropStaged(name: string): Promise<void> {
    const table = await this.findStaged(name);
    if (!table) return;
    await this.#discard(table, (drop) => drop());
    this.#staged.delete(name);
  }

  /**
   * Gives a staged table its name, in one transaction that also notes `job`. With `replaces` it takes the place of the table
   * that has the name: that one gives out no more leases, those under way end, and then both change at once. False, with
   * nothing done, where the name is taken and may not be. Fails as `checkRestoredRows`, for which `isRestored` tells the tables
   * of the same backup.
   */
  async publish(staged: Table, name: string, { replaces, isRestored, job, signal }: Publication): Promise<boolean> {
    const restored = () => ({ staged, name, staying: this.all(), isRestored });
    using _columns = hasReferences(restored()) ? await this.columns.exclude() : undefined;
    return await this.#changes.run(name, async () => {
      const old = this.#tables.get(name);
      if (old && !replaces) return false;
      await checkRestoredRows(restored(), signal);
      using _place = old ? undefined : this.#takePlace();
      // Opened again it has what makes the vectors of its managed indexes.
      for (const { rangeId } of staged.ranges) await this.#pool.close(rangeId);
      old?.replace();
      try {
        const heads = old ? await this.#discardRanges(old) : new Map();
        const nowMs = this.#clock.nowMs();
        const publication = { tableId: staged.id, name, replaces: old?.id, nowMs, heads, job: job() };
        const record = await this.#storage.catalog.publishTable(publication);
        this.#staged.delete(staged.name);
        if (old) this.#forget(old);
        const table = this.#adopt(record, staged.settings, staged.compiledSchema);
        this.#schemaChange.resume(table);
        return true;
      } catch (error) {
        if (old && this.#tables.get(name) === old) {
          old.keep();
          this.#schemaChange.resume(old);
        }
        throw error;
      }
    });
  }

  async #adoptStaged(record: TableRecord): Promise<Table> {
    const settings = JSON.parse(record.record) as TableSettings;
    const table = this.#tableOf(record, settings, await CompiledSchema.compile(settings.schema));
    this.#staged.set(table.name, table);
    for (const { rangeId } of table.ranges) this.#owners.set(rangeId, table);
    return table;
  }

  /** From now on nothing can search for words; fails with `index_not_found` when that is so already. */
  dropTextIndex(name: string): Promise<void> {
    return this.#schemaChange.dropText(this.#require(name));
  }

  /** The text index is built once more from what is there now; the old one serves until then. Runs inside `change`. */
  rebuildTextIndex(table: Table): Promise<void> {
    return this.#schemaChange.rebuildText(table);
  }

  /** False when the index is there. It serves as soon as it is built. */
  restoreTextIndex(name: string): Promise<boolean> {
    return this.#schemaChange.restoreText(this.#require(name));
  }

  /** Runs a change of a table's indexes when no other change of the table is under way. */
  change<T>(name: string, task: (table: Table) => Promise<T>): Promise<T> {
    this.#require(name);
    return this.#changes.run(name, () => task(this.#require(name)));
  }

  /** Ends what runs in the background, so that the ranges can be closed. */
  stop(): void {
    for (const table of [...this.#tables.values(), ...this.#staged.values()]) table.close();
  }

  #require(name: string): Table {
    const table = this.#tables.get(name);
    if (!table) throw tableNotFound(name);
    return table;
  }

  #adopt(record: TableRecord, settings: TableSettings, compiledSchema: CompiledSchema): Table {
    const table = this.#tableOf(record, settings, compiledSchema);
    this.#tables.set(table.name, table);
    for (const { rangeId } of table.ranges) this.#owners.set(rangeId, table);
    return table;
  }

  #tableOf(record: TableRecord, settings: TableSettings, compiledSchema: CompiledSchema): Table {
    const artifacts = readArtifactRecords(record.enrichments);
    return new Table({
      id: record.tableId,
      name: record.name,
      settings,
      ranges: record.ranges,
      indexes: readIndexRecords(record.indexes, artifacts),
      artifacts,
      compiledSchema,
      pool: this.#pool,
      isStaged: record.state === 'staged',
    });
  }
}

function alreadyExists(name: string): ServiceError {
  return new ServiceError('already_exists', `there is a table ${JSON.stringify(name)} already`);
}
