import type { Caller } from '../../access/principal.ts';
import type { Enrichment } from '../../enrichment/enrichment.ts';
import { isVectorIndex } from '../../index-kinds/all-kinds.ts';
import {
  type ArtifactConfig,
  type ArtifactDefinition,
  readArtifactConfig,
} from '../../index-kinds/configuration/artifact-config.ts';
import type { ArtifactEnrichment } from '../../protocol/database/artifacts.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Storage } from '../../storage/open-storage.ts';
import type { TableChange } from '../../storage/storage-calls.ts';
import type { Table } from '../table.ts';
import type { TableService } from '../table-service.ts';
import { newArtifact, readArtifactRecords } from './artifact-record.ts';
import { checkArtifacts, checkUnused, keepsArtifacts, refuseIndexOver } from './artifact-rules.ts';

/** Registers, replaces and drops the enrichments of tables. */
export class ArtifactService {
  readonly #tables: TableService;
  readonly #storage: Storage;
  readonly #enrichment: Enrichment;

  constructor(tables: TableService, storage: Storage, enrichment: Enrichment) {
    this.#tables = tables;
    this.#storage = storage;
    this.#enrichment = enrichment;
  }

  /** All that the table has, those included that its indexes declare; by name. */
  list(tableName: string, caller: Caller): ArtifactConfig[] {
    const { artifacts } = this.#tables.get(tableName, caller, 'read');
    return artifacts.map(({ config }) => config).sort((left, right) => (left.name < right.name ? -1 : 1));
  }

  /**
   * Registers an enrichment, or replaces the one of its name. Documents that are there are enriched in the background; where
   * the kind stays, what an earlier configuration has made is there until it is made again. Fails with `enrichment_in_use`
   * while an index holds its vectors.
   */
  async put(tableName: string, name: string, requested: ArtifactEnrichment, caller: Caller): Promise<void> {
    this.#tables.get(tableName, caller, 'admin');
    const config = await this.#enrichment.prepareArtifact(readArtifactConfig(name, requested), caller);
    await this.#tables.change(tableName, async (table) => {
      const known = table.artifacts.find((artifact) => artifact.name === name);
      if (known?.index !== undefined) {
        const message = `enrichment "${name}" belongs to the index "${known.index}"; drop the index to change it`;
        throw new ServiceError('already_exists', message);
      }
      if (known && Bun.deepEquals(known.config, config, true)) return;
      if (known) refuseIndexOver(name, indexesHeldBy(known.config, config, table), 'changed');
      checkArtifacts([config], table.artifacts);
      const row = newArtifact(config);
      if (!known) await this.#change(table, { addEnrichments: [row] });
      else if (keepsArtifacts(known.config, config)) await this.#change(table, { updateEnrichments: [row] });
      else await this.#change(table, { dropEnrichments: [name], addEnrichments: [row] }, known);
    });
  }

  /** Fails with `artifact_not_found`, and with `enrichment_in_use` while another one, or an index, is made from it. */
  async drop(tableName: string, name: string, caller: Caller): Promise<void> {
    this.#tables.get(tableName, caller, 'admin');
    await this.#tables.change(tableName, async (table) => {
      const known = find(table, name);
      if (known.index !== undefined) {
        const message = `enrichment "${name}" cannot be dropped: the index "${known.index}" declares it`;
        throw new ServiceError('enrichment_in_use', message);
      }
      checkUnused(new Set([name]), table.artifacts, table.indexes);
      await this.#change(table, { dropEnrichments: [name] }, known);
    });
  }

  async #change(table: Table, change: Omit<TableChange, 'tableId'>, gone?: ArtifactDefinition): Promise<void> {
    using lease = await table.lease();
    const { enrichments, goneParts } = await this.#storage.catalog.changeTable({ tableId: table.id, ...change });
    table.artifacts = readArtifactRecords(enrichments);
    for (const range of lease.ranges) {
      await range.setArtifacts(table.artifacts);
      for (const partId of goneParts) range.dropPart(partId);
    }
    // The text index has to forget what it holds of them.
    if (gone?.config.full_text_index) await this.#tables.rebuildTextIndex(table);
  }
}

/** Indexes that another configuration of an enrichment would not fit: edges and texts follow what it makes. */
function indexesHeldBy(before: ArtifactConfig, next: ArtifactConfig, { indexes }: Table): Table['indexes'] {
  return keepsArtifacts(before, next) ? indexes.filter(({ definition }) => isVectorIndex(definition)) : indexes;
}

/** An enrichment of the table. Fails with `artifact_not_found`. */
export function find(table: Table, name: string): ArtifactDefinition {
  const found = table.artifacts.find((artifact) => artifact.name === name);
  if (found) return found;
  throw new ServiceError('artifact_not_found', `table "${table.name}" has no enrichment "${name.slice(0, 64)}"`);
}
