import type { TableSchema } from '../protocol/database/tables.ts';
import type { IndexRecord } from '../storage/catalog-records.ts';
import type { NewIndex } from '../storage/storage-calls.ts';
import type { CheckedIndexConfig } from './index-config.ts';
import type { IndexRole, TableIndex } from './table.ts';

/** What the catalog keeps of an index as JSON: its configuration, and the schema that maps the fields of full text. */
interface StoredIndex {
  config: CheckedIndexConfig;
  schema?: TableSchema;
}

/** The catalog row of an index to be created. */
export function newIndex(config: CheckedIndexConfig, schema: TableSchema, role: IndexRole): NewIndex {
  return { name: config.name, config: indexRecordJson(config, schema), state: role, shape: shapeOf(config) };
}

/** What an index has to share with an earlier one of its name to have its vectors; undefined for one of documents. */
export function shapeOf(config: CheckedIndexConfig): string | undefined {
  if (config.type !== 'embeddings') return undefined;
  return config.sparse ? 'sparse' : `dense ${config.dimension}`;
}

export function indexRecordJson(config: CheckedIndexConfig, schema: TableSchema): string {
  const stored: StoredIndex = config.type === 'full_text' ? { config, schema: mappingOf(schema) } : { config };
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
  return { name, incarnation, partId, role: record.state as IndexRole, config: stored.config, schema: stored.schema };
}
