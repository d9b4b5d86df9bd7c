import { isDeepStrictEqual } from 'node:util';
import type { Caller } from '../access/principal.ts';
import { limits } from '../config/limits.ts';
import { kindOf, kindOfConfig } from '../index-kinds/all-kinds.ts';
import { primaryIndexPrefix, readIndexConfig } from '../index-kinds/index-config.ts';
import type { CountedStats, IndexCounts } from '../index-kinds/index-kind.ts';
import type { RangeIndexReport } from '../indexing/index-report.ts';
import type { IndexConfig } from '../protocol/database/tables.ts';
import { checkIndexName } from '../protocol/names.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { Storage } from '../storage/open-storage.ts';
import { newIndex, readIndexRecord } from './index-record.ts';
import type { Table, TableIndex } from './table.ts';
import type { TableService } from './table-service.ts';

/** An index with what its ranges say of it now. */
export interface IndexReport {
  config: TableIndex['config'];
  incarnation: string;
  counts(stats: CountedStats): IndexCounts;
  ranges: RangeIndexReport[];
}

/** Adds, drops and describes the indexes of tables. */
export class IndexService {
  readonly #tables: TableService;
  readonly #storage: Storage;

  constructor(tables: TableService, storage: Storage) {
    this.#tables = tables;
    this.#storage = storage;
  }

  async list(tableName: string, caller: Caller): Promise<IndexReport[]> {
    const table = this.#tables.get(tableName, caller, 'read');
    return Promise.all(table.indexes.map((index) => report(table, index)));
  }

  /** Fails with `index_not_found`. */
  async get(tableName: string, indexName: string, caller: Caller): Promise<IndexReport> {
    const table = this.#tables.get(tableName, caller, 'read');
    return report(table, find(table, indexName));
  }

  /** `created` is false when the index exists with this very configuration. Fails with `already_exists` otherwise. */
  async create(
    tableName: string,
    indexName: string,
    requested: IndexConfig,
    caller: Caller,
  ): Promise<{ created: boolean; config: TableIndex['config'] }> {
    this.#tables.get(tableName, caller, 'admin');
    const config = readIndexConfig(checkIndexName(indexName), requested);
    return this.#tables.change(tableName, async (table) => {
      const existing = table.indexes.find((index) => index.name === indexName);
      if (existing) {
        if (isDeepStrictEqual(existing.config, config)) return { created: false, config: existing.config };
        const message = `there is an index "${indexName}" with another configuration; drop it first to change it, with "keep_vectors=true" to keep its vectors`;
        throw new ServiceError('already_exists', message);
      }
      if (table.indexes.length >= limits.indexesPerTableMax) {
        throw new ServiceError('limit_exceeded', `a table has at most ${limits.indexesPerTableMax} indexes`);
      }
      using lease = await table.lease();
      const { indexes } = await this.#storage.catalog.changeTable({
        tableId: table.id,
        addIndexes: [newIndex(config, table.settings.schema, 'extra')],
      });
      table.indexes = indexes.map(readIndexRecord);
      const added = find(table, indexName);
      for (const range of lease.ranges) range.addIndex(added.definition);
      return { created: true, config: added.config };
    });
  }

  /**
   * Vectors go with their index unless they are kept: then the next index of the name and shape finds them. Vectors that an
   * earlier drop has kept go with the next drop of the name. Fails with `index_not_found`.
   */
  async drop(tableName: string, indexName: string, caller: Caller, keepsVectors = false): Promise<void> {
    this.#tables.get(tableName, caller, 'admin');
    await this.#tables.change(tableName, async (table) => {
      const index = table.indexes.find(({ name }) => name === indexName);
      if (keepsVectors && !index) throw notFound(table, indexName);
      if (indexName.startsWith(primaryIndexPrefix)) {
        const message = `"${indexName}" belongs to the table and cannot be dropped; it goes with the table`;
        throw new ServiceError('index_in_use', message);
      }
      using lease = await table.lease();
      const keptShape = keepsVectors && index ? kindOfConfig(index.config).shapeOf(index.config) : undefined;
      const { indexes, goneParts } = await this.#storage.catalog.changeTable({
        tableId: table.id,
        dropIndexes: [{ name: indexName, keptShape }],
      });
      table.indexes = indexes.map(readIndexRecord);
      for (const range of lease.ranges) {
        await range.removeIndex(indexName);
        for (const partId of goneParts) range.dropVectors(partId);
      }
    });
  }
}

function find(table: Table, indexName: string): TableIndex {
  const index = table.indexes.find(({ name }) => name === indexName);
  if (!index) throw notFound(table, indexName);
  return index;
}

function notFound(table: Table, indexName: string): ServiceError {
  return new ServiceError('index_not_found', `table "${table.name}" has no index "${indexName}"`);
}

async function report(table: Table, index: TableIndex): Promise<IndexReport> {
  using lease = await table.lease();
  const ranges = lease.ranges.flatMap((range) => range.report(index.name) ?? []);
  const { counts } = kindOf(index.definition);
  return { config: index.config, incarnation: String(index.incarnation), counts, ranges };
}
