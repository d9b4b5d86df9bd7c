import { type CheckedIndexConfig, defineIndex, kindOfConfig } from '../../index-kinds/all-kinds.ts';
import type { TableSchema } from '../../protocol/database/tables.ts';
import type { IndexRecord } from '../../storage/catalog/catalog-records.ts';
import type { NewIndex } from '../../storage/storage-calls.ts';
import type { IndexRole, TableIndex } from './table-index.ts';

/** What the catalog keeps of an index as JSON: its configuration, and the schema that maps the fields of full text. */
interface StoredIndex {
  config: CheckedIndexConfig;
  schema?: TableSchema;
}

/** The catalog row of an index to be created. */
export function newIndex(config: CheckedIndexConfig, schema: TableSchema, role: IndexRole): NewIndex {
  return {
    name: config.name,
    config: indexRecordJson(config, schema),
    state: role,
    shape: kindOfConfig(config).shapeOf(config),
  };
}

/** The schema of an index that keeps whole values and cuts nothing into words. */
export function valuesOnly(schema: TableSchema): TableSchema {
  return { ...schema, values_only: true } as TableSchema;
}

export function isValuesOnly(schema: TableSchema | undefined): boolean {
  return schema !== undefined && Object.hasOwn(schema, 'values_only');
}

export function indexRecordJson(config: CheckedIndexConfig, schema: TableSchema): string {
  const stored: StoredIndex =
    kindOfConfig(config).follows === 'documents' ? { config, schema: mappingOf(schema) } : { config };
  return JSON.stringify(stored);
}

/** The part of a schema by which documents are indexed: what only queries look at may change without a rebuild. */
export function mappingOf(schema: TableSchema): TableSchema {
  const { synonyms: _, ...mapping } = schema;
  return mapping;
}

export function readIndexRecord(record: IndexRecord): TableIndex {
  const stored = JSON.parse(record.config) as StoredIndex;
  const { name, incarnation, partId } = record;
  const identity = { name, incarnation, partId, memOnly: stored.config.mem_only };
  const definition = defineIndex(identity, stored.config, stored.schema);
  const embedder = 'managed' in definition ? definition.managed?.embedder : undefined;
  return { name, incarnation, role: record.state as IndexRole, config: stored.config, definition, embedder };
}
