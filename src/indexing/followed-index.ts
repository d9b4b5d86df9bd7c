import type { IndexDefinition } from '../index-kinds/all-kinds.ts';
import type { ArtifactDefinition } from '../index-kinds/configuration/artifact-config.ts';
import { primaryIndexPrefix } from '../index-kinds/configuration/index-config.ts';
import type { FullTextDefinition } from '../index-kinds/full-text.ts';
import type { IndexApplier } from './applier/index-applier.ts';
import type { PartProducer } from './enrichment/part-producer.ts';

/** An index of an open range, with what keeps it up to date. */
export interface FollowedIndex {
  definition: IndexDefinition;
  applier: IndexApplier;
  /** Makes what the index is built from, where the server does. */
  producer: PartProducer | undefined;
  /** Lets the feed forget what this index alone needs. */
  leaveFeed(): void;
}

/** The enrichment whose vectors the index holds, or of which its edges are made. */
export function artifactOf(definition: IndexDefinition): string | undefined {
  if (definition.kind === 'graph') return definition.derived?.source.artifact;
  return definition.kind === 'dense' ? definition.artifact : undefined;
}

/** Whether the index has an entry for each document of its range, whatever is in it. */
export function hasAllDocuments(definition: IndexDefinition): boolean {
  return definition.kind === 'full_text' && definition.artifacts === undefined;
}

/** Whether texts of artifacts belong into the index: it is the default one of its table, or will be, or is over enrichments. */
export function mayHoldTexts(definition: IndexDefinition): definition is FullTextDefinition {
  const { kind, name } = definition;
  return kind === 'full_text' && (definition.artifacts !== undefined || name.startsWith(primaryIndexPrefix));
}

/** Those of a table's enrichments whose texts the index holds. */
export function textArtifactsOf<Artifact extends Pick<ArtifactDefinition, 'name' | 'config'>>(
  definition: IndexDefinition,
  artifacts: readonly Artifact[],
): readonly Artifact[] {
  if (artifacts.length === 0 || !mayHoldTexts(definition)) return [];
  const { artifacts: named } = definition;
  return artifacts.filter(({ name, config }) => (named ? named.includes(name) : config.full_text_index));
}
