import { type CheckedIndexConfig, defineIndex, kindOfConfig, sourceArtifactsOf } from '../../index-kinds/all-kinds.ts';
import { type ArtifactDefinition, embedderConfigOf } from '../../index-kinds/configuration/artifact-config.ts';
import type { TableSchema } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { IndexRecord } from '../../storage/catalog/catalog-records.ts';
import type { NewIndex } from '../../storage/storage-calls.ts';
import type { IndexRole, TableIndex } from './table-index.ts';

/** The record of an index in the catalog, as JSON: its configuration, and the schema that maps the fields of full text. */
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
    kindOfConfig(config).follows === 'documents' ? { config, schema: mappingFor(config, schema) } : { config };
  return JSON.stringify(stored);
}

/**
 * The mapping of an index: one over enrichments has the members of documents
 * too, for filters, but searches them by name alone.
 */
export function mappingFor(config: CheckedIndexConfig, schema: TableSchema): TableSchema {
  const isOverArtifacts = config.type === 'full_text' && config.sources !== undefined;
  return isOverArtifacts ? ({ ...mappingOf(schema), searches_artifacts: true } as TableSchema) : mappingOf(schema);
}

/** The part of a schema by which documents are indexed: what only queries look at may change without a rebuild. */
function mappingOf(schema: TableSchema): TableSchema {
  const { synonyms: _, ...mapping } = schema;
  return mapping;
}

/** The configuration of an index as the catalog keeps it. */
export function readIndexConfigOf(record: IndexRecord): CheckedIndexConfig {
  return (JSON.parse(record.config) as StoredIndex).config;
}

/** The indexes of a table; `artifacts` are its enrichments, of which indexes hold vectors. */
export function readIndexRecords(
  records: readonly IndexRecord[],
  artifacts: readonly ArtifactDefinition[],
): TableIndex[] {
  return records.map((record) => readIndexRecord(record, artifacts));
}

export function readIndexRecord(record: IndexRecord, artifacts: readonly ArtifactDefinition[]): TableIndex {
  const stored = JSON.parse(record.config) as StoredIndex;
  const { name, incarnation } = record;
  const artifact = artifactUnder(stored.config, artifacts);
  // Vectors of an enrichment are those of the index; edges that are made of one have a place of their own.
  const holdsIt = artifact !== undefined && stored.config.type === 'embeddings';
  const partId = holdsIt ? artifact.partId : record.partId;
  const identity = { name, incarnation, partId, sourcePartId: artifact?.partId, memOnly: stored.config.mem_only };
  const definition = defineIndex(identity, stored.config, stored.schema);
  const managed = 'managed' in definition ? definition.managed?.embedder : undefined;
  const embedder = holdsIt ? embedderConfigOf(artifact.config) : managed;
  return { name, incarnation, role: record.state as IndexRole, config: stored.config, definition, embedder };
}

/** The enrichment that an index is made of; undefined for any other, and for one of texts, which come with the documents. */
function artifactUnder(
  config: CheckedIndexConfig,
  artifacts: readonly ArtifactDefinition[],
): ArtifactDefinition | undefined {
  const [wanted] = config.type === 'full_text' ? [] : sourceArtifactsOf(config);
  if (wanted === undefined) return undefined;
  const found = artifacts.find(({ name }) => name === wanted);
  if (found) return found;
  throw new ServiceError('artifact_not_found', `index "${config.name}" is over an enrichment that is not there`);
}
