import { type Caller, requireWholeTable } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { Enrichment } from '../../enrichment/enrichment.ts';
import { isKeptByText, kindOf, kindOfConfig } from '../../index-kinds/all-kinds.ts';
import {
  primaryIndexConfig,
  primaryIndexPrefix,
  readIndexConfig,
} from '../../index-kinds/configuration/index-config.ts';
import { inlineOf } from '../../index-kinds/configuration/index-enrichments.ts';
import { shownIndexConfig } from '../../index-kinds/configuration/managed-source.ts';
import type { FullTextConfig } from '../../index-kinds/full-text.ts';
import type { CountedStats, IndexCounts } from '../../index-kinds/index-kind.ts';
import type { RangeIndexReport } from '../../indexing/index-report.ts';
import type { Clock } from '../../lib/clock.ts';
import type { IndexConfig } from '../../protocol/database/tables.ts';
import { checkIndexName } from '../../protocol/names.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Storage } from '../../storage/open-storage.ts';
import { newArtifact, readArtifactRecords } from '../artifacts/artifact-record.ts';
import { checkArtifacts, checkUnused, newAmong, overArtifact, requireNamed } from '../artifacts/artifact-rules.ts';
import { OpenGraph } from '../graph/open-graph.ts';
import type { TraversalCount, TraversalCounts } from '../graph/traversal-counts.ts';
import { checkRelationalIndex, isRelational } from '../relational/relational-schema.ts';
import type { Table } from '../table.ts';
import type { TableService } from '../table-service.ts';
import { newIndex, readIndexRecords } from './index-record.ts';
import type { TableIndex } from './table-index.ts';

/** An index with what its ranges say of it now. */
interface IndexReport {
  config: TableIndex['config'];
  incarnation: string;
  counts(stats: CountedStats): IndexCounts;
  ranges: RangeIndexReport[];
  /** False: it is being built, and nothing else searches for words meanwhile. */
  serves: boolean;
  /** Of a graph index: how its searches have ended. */
  traversal?: TraversalCount | undefined;
}

interface IndexServiceDeps {
  storage: Storage;
  enrichment: Enrichment;
  clock: Clock;
  traversals: TraversalCounts;
}

/** The services of a report. */
interface Reported {
  clock: Clock;
  traversals: TraversalCounts;
  caller: Caller;
}

/** Adds, drops and describes the indexes of tables. */
export class IndexService {
  readonly #tables: TableService;
  readonly #storage: Storage;
  readonly #enrichment: Enrichment;
  readonly #clock: Clock;
  readonly #traversals: TraversalCounts;

  constructor(tables: TableService, { storage, enrichment, clock, traversals }: IndexServiceDeps) {
    this.#tables = tables;
    this.#storage = storage;
    this.#enrichment = enrichment;
    this.#clock = clock;
    this.#traversals = traversals;
  }

  async list(tableName: string, caller: Caller): Promise<IndexReport[]> {
    const table = this.#counted(tableName, caller);
    return Promise.all(table.listedIndexes.map((index) => report(table, index, this.#reported(caller))));
  }

  /** Fails with `index_not_found`. */
  async get(tableName: string, indexName: string, caller: Caller): Promise<IndexReport> {
    const table = this.#counted(tableName, caller);
    return report(table, find(table, indexName), this.#reported(caller));
  }

  #reported(caller: Caller): Reported {
    return { clock: this.#clock, traversals: this.#traversals, caller };
  }

  /** A table of which the caller may know how many documents and words it has. */
  #counted(tableName: string, caller: Caller): Table {
    const table = this.#tables.get(tableName, caller, 'read');
    requireWholeTable(caller, tableName, 'the state of an index');
    return table;
  }

  /** `created` is false when the index exists with this very configuration. Fails with `already_exists` otherwise. */
  async create(
    tableName: string,
    indexName: string,
    requested: IndexConfig,
    caller: Caller,
  ): Promise<{ created: boolean; config: TableIndex['config'] }> {
    const { settings } = this.#tables.get(tableName, caller, 'admin');
    const primary = primaryIndexConfig(settings.schema.version ?? 0);
    if (indexName === primary.name) return this.#restoreText(tableName, requested, primary);
    const read = readIndexConfig(checkIndexName(indexName), requested);
    if (isRelational(settings.schema)) checkRelationalIndex(read);
    const prepared = await this.#enrichment.prepare(read, caller);
    return this.#tables.change(tableName, async (table) => {
      const config = overArtifact(prepared, [
        ...table.artifacts.map((artifact) => artifact.config),
        ...inlineOf(prepared),
      ]);
      const existing = table.indexes.find((index) => index.name === indexName);
      if (existing) {
        if (Bun.deepEquals(existing.config, config, true)) {
          return { created: false, config: shownIndexConfig(existing.config) };
        }
        const message = `there is an index "${indexName}" with another configuration; drop it first to change it, with "keep_vectors=true" to keep its vectors`;
        throw new ServiceError('already_exists', message);
      }
      if (table.indexes.length >= limits.indexesPerTableMax) {
        throw new ServiceError('limit_exceeded', `a table has at most ${limits.indexesPerTableMax} indexes`);
      }
      const declared = newAmong(inlineOf(config), table.artifacts);
      checkArtifacts(declared, table.artifacts);
      requireNamed(config.enrichments, [...table.artifacts, ...declared]);
      using lease = await table.lease();
      const { indexes, enrichments } = await this.#storage.catalog.changeTable({
        tableId: table.id,
        addIndexes: [newIndex(config, table.settings.schema, 'extra')],
        addEnrichments: declared.map((each) => newArtifact(each, indexName)),
      });
      table.artifacts = readArtifactRecords(enrichments);
      table.indexes = readIndexRecords(indexes, table.artifacts);
      const added = find(table, indexName);
      for (const range of lease.ranges) {
        if (declared.length > 0) await range.setArtifacts(table.artifacts);
        range.addIndex(added.definition);
      }
      return { created: true, config: shownIndexConfig(added.config) };
    });
  }

  /** The default index again, after a drop. It has no other configuration than its own. */
  async #restoreText(tableName: string, requested: IndexConfig, primary: FullTextConfig) {
    const config: Record<string, unknown> = { ...primary, ...requested };
    if (!Bun.deepEquals(config, primary, true)) {
      throw new ServiceError('already_exists', `"${primary.name}" is created without a configuration of its own`);
    }
    return { created: await this.#tables.restoreTextIndex(tableName), config: primary };
  }

  /**
   * Vectors go with their index unless they are kept: then the next index of the name and shape finds them. Vectors that an
   * earlier drop has kept go with the next drop of the name. Without the default full-text index words can no longer be
   * searched for; filters and orders by values go on. Fails with `index_not_found`.
   */
  async drop(tableName: string, indexName: string, caller: Caller, keepsVectors = false): Promise<void> {
    const table = this.#tables.get(tableName, caller, 'admin');
    if (indexName.startsWith(primaryIndexPrefix)) {
      find(table, indexName);
      return this.#tables.dropTextIndex(tableName);
    }
    await this.#tables.change(tableName, async (table) => {
      const index = table.indexes.find(({ name }) => name === indexName);
      if (keepsVectors && !index) throw notFound(table, indexName);
      using lease = await table.lease();
      const own = table.artifacts.filter((artifact) => artifact.index === indexName);
      const staying = table.indexes.filter(({ name }) => name !== indexName);
      checkUnused(new Set(own.map(({ name }) => name)), table.artifacts, staying);
      const keptShape = keepsVectors && index ? kindOfConfig(index.config).shapeOf(index.config) : undefined;
      const { indexes, enrichments, goneParts } = await this.#storage.catalog.changeTable({
        tableId: table.id,
        dropIndexes: [{ name: indexName, keptShape }],
        dropEnrichments: own.map(({ name }) => name),
      });
      table.artifacts = readArtifactRecords(enrichments);
      table.indexes = readIndexRecords(indexes, table.artifacts);
      for (const range of lease.ranges) {
        if (own.length > 0) await range.setArtifacts(table.artifacts);
        await range.removeIndex(indexName);
        for (const partId of goneParts) range.dropPart(partId);
      }
      if (own.some((artifact) => artifact.config.full_text_index)) await this.#tables.rebuildTextIndex(table);
    });
  }
}

function find(table: Table, indexName: string): TableIndex {
  const index = table.listedIndexes.find(({ name }) => name === indexName);
  if (!index) throw notFound(table, indexName);
  return index;
}

function notFound(table: Table, indexName: string): ServiceError {
  return new ServiceError('index_not_found', `table "${table.name}" has no index "${indexName}"`);
}

async function report(table: Table, index: TableIndex, { clock, traversals, caller }: Reported): Promise<IndexReport> {
  using lease = await table.lease();
  const reported = isKeptByText(index.definition) ? table.servingIndex.name : index.name;
  const ranges = lease.ranges.flatMap((range) => range.report(reported) ?? []);
  const kind = kindOf(index.definition);
  const graph =
    index.definition.kind === 'graph' && ranges.every(({ stats }) => stats !== undefined)
      ? await new OpenGraph({ table, ranges: lease.ranges, clock }, index.definition).counts(caller)
      : undefined;
  const counts = (stats: CountedStats) => kind.counts({ ...stats, graph });
  const traversal = index.definition.kind === 'graph' ? traversals.of(table, index.incarnation) : undefined;
  const serves = !(index.role === 'building' && table.textIndex === 'coming');
  const incarnation = String(index.incarnation);
  return { config: shownIndexConfig(index.config), incarnation, counts, ranges, serves, traversal };
}
