import type { CheckedIndexConfig, IndexDefinition } from '../../index-kinds/all-kinds.ts';
import type { ProviderConfig } from '../../provider-config/provider-config.ts';

/** `serving` answers queries and `sync_level: full_text`; `building` will take its place; `extra` was added by a user. */
export type IndexRole = 'serving' | 'building' | 'extra';

export interface TableIndex {
  name: string;
  incarnation: number;
  role: IndexRole;
  /** As it was written, with the credentials in it; `shownIndexConfig` is without. */
  config: CheckedIndexConfig;
  /** As everything of ours reads it. */
  definition: IndexDefinition;
  /** The producer of its vectors; undefined where they come with the documents. */
  embedder?: ProviderConfig | undefined;
}
