import { TableSchema as CompiledSchema } from '../../engine/table-schema.ts';
import { mappedSchemaOf } from '../../index-kinds/all-kinds.ts';
import { primaryIndexConfig, valuesIndexName } from '../../index-kinds/configuration/index-config.ts';
import type { JobRequest } from '../../jobs/job.ts';
import type { Clock } from '../../lib/clock.ts';
import type { KeyedMutex } from '../../lib/concurrency/keyed-mutex.ts';
import { supervise } from '../../lib/concurrency/supervise.ts';
import type { TableSchema } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { JobRecord } from '../../storage/catalog/catalog-records.ts';
import type { Storage } from '../../storage/open-storage.ts';
import type { NewIndex } from '../../storage/storage-calls.ts';
import {
  indexRecordJson,
  isValuesOnly,
  mappingFor,
  newIndex,
  readIndexRecords,
  valuesOnly,
} from '../indexes/index-record.ts';
import type { TableIndex } from '../indexes/table-index.ts';
import type { Table, TableLease } from '../table.ts';
import type { TableSettings } from '../table-view.ts';
import { type TtlRewriteState, ttlRewriteKind } from '../upkeep/ttl-rewrite.ts';
import { needsRebuild, nextSchema, ttlField } from './document-schema.ts';

/** Asks for a job; it is durable when this resolves. */
type SubmitJob = (job: JobRequest) => Promise<JobRecord>;

interface SchemaChangeDeps {
  readonly storage: Storage;
  /** Held by whoever changes a table, by its name. */
  readonly changes: KeyedMutex;
  readonly clock: Clock;
  readonly submit: SubmitJob;
  /** A follow-up of a change has failed, and is done again after a pause. */
  onServiceFailed(service: string, error: unknown, attempt: number): void;
}

/** Whether a change may replace this schema. */
export type SchemaCondition = (current: TableSchema) => boolean;

/**
 * Changes a table's schema. A change of document types builds the next version of the primary index in the
 * background while the old one serves; both apply every write. When the new one holds everything it takes over, in
 * one catalog transaction. A second change replaces the unfinished target and keeps the first `readSchema`.
 */
export class SchemaChange {
  readonly #storage: Storage;
  readonly #changes: KeyedMutex;
  readonly #deps: SchemaChangeDeps;

  constructor(deps: SchemaChangeDeps) {
    this.#storage = deps.storage;
    this.#changes = deps.changes;
    this.#deps = deps;
  }

  apply(table: Table, requested: TableSchema, holds: SchemaCondition = () => true): Promise<void> {
    return this.#changes.run(table.name, async () => {
      const current = table.settings.schema;
      if (!holds(current)) {
        const message = 'the schema has changed since it was read; read the table again and send its "ETag"';
        throw new ServiceError('precondition_failed', message);
      }
      const next = nextSchema(requested, current);
      const compiled = await CompiledSchema.compile(next);
      try {
        using lease = await table.lease();
        const settings: TableSettings = { ...table.settings, schema: next };
        if (ttlField(current) !== ttlField(next)) settings.ttlRewrite = crypto.randomUUID();
        if (needsRebuild(current, next)) await this.#startRebuild(table, lease, settings);
        else await this.#replaceInPlace(table, lease, settings);
        for (const range of lease.ranges) await range.stored.setTtl(table.rangeTtl);
      } catch (error) {
        compiled.close();
        throw error;
      }
      table.compiledSchema.close();
      table.compiledSchema = compiled;
      this.resume(table);
    });
  }

  /** An index of whole values alone takes the place of the text index as soon as it is built; words go at once. */
  dropText(table: Table): Promise<void> {
    return this.#changes.run(table.name, async () => {
      if (table.settings.textIndexDropped) {
        throw new ServiceError('index_not_found', `the full-text index of table "${table.name}" was dropped before`);
      }
      using lease = await table.lease();
      await this.#replacePrimary(table, lease, { ...table.settings, textIndexDropped: true });
      this.resume(table);
    });
  }

  /** False when the text index was not dropped. */
  restoreText(table: Table): Promise<boolean> {
    return this.#changes.run(table.name, async () => {
      const { textIndexDropped, ...settings } = table.settings;
      if (!textIndexDropped) return false;
      using lease = await table.lease();
      await this.#replacePrimary(table, lease, settings);
      this.resume(table);
      return true;
    });
  }

  /** Builds the text index once more under the next version of the schema; for who holds the table's lock. */
  async rebuildText(table: Table): Promise<void> {
    if (table.settings.textIndexDropped) return;
    const { schema } = table.settings;
    using lease = await table.lease();
    await this.#startRebuild(table, lease, {
      ...table.settings,
      schema: { ...schema, version: (schema.version ?? 0) + 1 },
    });
    this.resume(table);
  }

  /** Builds the primary index that the settings ask for, unless it is the one that serves. */
  async #replacePrimary(table: Table, lease: TableLease, settings: TableSettings): Promise<void> {
    const wanted = primaryIndex(settings);
    const unfinished = table.indexes.filter((index) => index.role === 'building').map((index) => index.name);
    const added = wanted.name === table.servingIndex.name ? [] : [wanted];
    await this.#commit(table, lease, settings, added, unfinished);
  }

  /** Waits in the background for an index that is being built, then lets it serve; has TTL bases read again. */
  resume(table: Table): void {
    const token = table.settings.ttlRewrite;
    if (token !== undefined) this.#follow(table, 'rewrite of TTL bases', () => this.#rewriteTtlBases(table, token));
    const building = table.indexes.find((index) => index.role === 'building');
    if (building) this.#follow(table, 'schema change', () => this.#finish(table, building.name));
  }

  /** Runs a follow-up of a change that is committed. One that a full disk, for instance, keeps from its end is run again. */
  #follow(table: Table, name: string, run: () => Promise<void>): void {
    const { clock, onServiceFailed: onFailed } = this.#deps;
    void supervise({ name, run }, { clock, signal: table.closing, onFailed });
  }

  async #rewriteTtlBases(table: Table, token: string): Promise<void> {
    const state: TtlRewriteState = { tableId: table.id, token };
    // The token makes it one job, however often it is asked for; where that has failed, it is asked for once more.
    for (let key = token, isAsked = false; !isAsked; ) {
      const job = await this.#deps.submit({ kind: ttlRewriteKind, principal: '', idempotencyKey: key, state });
      isAsked = job.phase !== 'failed';
      key = `${token}/${job.jobId}`;
    }
  }

  /** All TTL bases have been read again: documents expire by them from now on. */
  finishRewrite(table: Table, token: string): Promise<void> {
    return this.#changes.run(table.name, async () => {
      if (table.settings.ttlRewrite !== token || table.closing.aborted) return;
      const { ttlRewrite: _, ...settings } = table.settings;
      await this.#storage.catalog.changeTable({ tableId: table.id, record: JSON.stringify(settings) });
      table.settings = settings;
      using lease = await table.lease();
      for (const range of lease.ranges) await range.stored.setTtl(table.rangeTtl);
    });
  }

  async #startRebuild(table: Table, lease: TableLease, changed: TableSettings): Promise<void> {
    const next = changed.schema;
    const readSchema = table.settings.readSchema ?? table.settings.schema;
    const settings: TableSettings = { ...changed, readSchema };
    const abandoned = table.indexes.filter((index) => index.role === 'building').map((index) => index.name);
    const extras = table.indexes.filter((index) => index.role === 'extra' && index.definition.kind === 'full_text');
    const added: NewIndex[] = [primaryIndex(settings), ...extras.map((index) => newIndex(index.config, next, 'extra'))];
    const dropped = [...abandoned, ...extras.map((index) => index.name)];
    await this.#commit(table, lease, settings, added, dropped);
  }

  /** Nothing that is indexed changes its meaning: rules for new fields are taken over by reopening the indexes. */
  async #replaceInPlace(table: Table, lease: TableLease, settings: TableSettings): Promise<void> {
    const next = settings.schema;
    const remap = !Bun.deepEquals(table.settings.schema.dynamic_templates, next.dynamic_templates, true);
    const mapped = ({ definition }: TableIndex, by: TableSchema) =>
      isValuesOnly(mappedSchemaOf(definition)) ? valuesOnly(by) : by;
    const isMapped = (index: TableIndex) =>
      Bun.deepEquals(
        mappedSchemaOf(index.definition),
        mappingFor(index.config, mapped(index, table.settings.schema)),
        true,
      );
    const followed = table.indexes.filter((index) => remap && isMapped(index));
    const { indexes } = await this.#storage.catalog.changeTable({
      tableId: table.id,
      record: JSON.stringify(settings),
      updateIndexes: followed.map((index) => ({
        name: index.name,
        config: indexRecordJson(index.config, mapped(index, next)),
      })),
    });
    table.settings = settings;
    table.indexes = readIndexRecords(indexes, table.artifacts);
    for (const index of table.indexes.filter(({ name }) => followed.some((each) => each.name === name))) {
      await Promise.all(lease.ranges.map((range) => range.reopenIndex(index.definition)));
    }
  }

  async #commit(
    table: Table,
    lease: TableLease,
    settings: TableSettings,
    added: NewIndex[],
    dropped: string[],
    updated: { name: string; state: string }[] = [],
    lag: () => Promise<void> | undefined = () => undefined,
  ): Promise<void> {
    const { indexes } = await this.#storage.catalog.changeTable({
      tableId: table.id,
      record: JSON.stringify(settings),
      dropIndexes: dropped.map((name) => ({ name })),
      addIndexes: added,
      updateIndexes: updated,
    });
    // Nothing may happen between the last look and the switch: what a search has shown must stay visible.
    for (let behind = lag(); behind; behind = lag()) await behind;
    table.settings = settings;
    table.indexes = readIndexRecords(indexes, table.artifacts);
    const fresh = table.indexes.filter((index) => added.some((each) => each.name === index.name));
    for (const range of lease.ranges) {
      for (const name of dropped) await range.removeIndex(name);
      for (const index of fresh) range.addIndex(index.definition);
    }
  }

  async #finish(table: Table, indexName: string): Promise<void> {
    if (!(await isBuilt(table, indexName))) return;
    await this.#changes.run(table.name, async () => {
      const building = table.indexes.find((index) => index.role === 'building' && index.name === indexName);
      if (!building || table.closing.aborted) return;
      using lease = await table.lease();
      const { readSchema: _, ...settings } = table.settings;
      const replaced = table.servingIndex.name;
      const updated = [{ name: indexName, state: 'serving' }];
      await this.#commit(table, lease, settings, [], [replaced], updated, () =>
        lagOf(table, lease, indexName, replaced),
      );
    });
  }
}

/** The index for words and values of the newest schema, or for values alone; it is to be built. */
function primaryIndex({ schema, textIndexDropped }: TableSettings): NewIndex {
  const version = schema.version ?? 0;
  if (!textIndexDropped) return newIndex(primaryIndexConfig(version), schema, 'building');
  return newIndex(primaryIndexConfig(version, valuesIndexName(version)), valuesOnly(schema), 'building');
}

/** Whether every range has built the index; false when the table closes before. */
async function isBuilt(table: Table, indexName: string): Promise<boolean> {
  if (table.closing.aborted) return false;
  using lease = await table.lease();
  const appliers = lease.ranges.flatMap((range) => range.applier(indexName) ?? []);
  const built = await Promise.all(appliers.map((applier) => applier.whenLive(table.closing)));
  return built.every(Boolean);
}

/** Resolves when the index shows everything that the one it replaces shows now; undefined when it does already. */
function lagOf(table: Table, lease: TableLease, indexName: string, replaced: string): Promise<void> | undefined {
  if (table.closing.aborted) return undefined;
  const behind = lease.ranges.flatMap((range) => {
    const [next, old] = [range.applier(indexName), range.applier(replaced)];
    if (!next || !old || next.state === 'closed') return [];
    const { published } = old.progress;
    return next.progress.published < published ? [next.waitFor(published, table.closing)] : [];
  });
  const done = () => undefined;
  return behind.length === 0 ? undefined : Promise.all(behind).then(done, done);
}
