import {
  type ArtifactConfig,
  type ArtifactDefinition,
  defineArtifacts,
} from '../../index-kinds/configuration/artifact-config.ts';
import type { EnrichmentRecord } from '../../storage/catalog/catalog-records.ts';
import type { NewEnrichment } from '../../storage/storage-calls.ts';

/** The record of an enrichment in the catalog, as JSON. */
interface StoredArtifact {
  config: ArtifactConfig;
  /** The index that declares it. */
  index?: string;
}

/** The catalog row of an enrichment; `index` declares it, where it is not the table's own. */
export function newArtifact(config: ArtifactConfig, index?: string): NewEnrichment {
  const stored: StoredArtifact = { config, ...(index === undefined ? {} : { index }) };
  return { name: config.name, config: JSON.stringify(stored) };
}

/** The enrichments of a table, each behind the one that it is made from. */
export function readArtifactRecords(records: readonly EnrichmentRecord[]): ArtifactDefinition[] {
  return defineArtifacts(
    records.map(({ partId, config: json }) => {
      const { config, index } = JSON.parse(json) as StoredArtifact;
      return { partId, config, index };
    }),
  );
}
