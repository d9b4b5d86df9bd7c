import type { IndexDefinition } from '../index-kinds/all-kinds.ts';
import { primaryIndexPrefix } from '../index-kinds/configuration/index-config.ts';
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

/** Whether texts of artifacts belong into the index: it is the default one of its table, or will be. */
export function holdsTexts({ kind, name }: IndexDefinition): boolean {
  return kind === 'full_text' && name.startsWith(primaryIndexPrefix);
}
