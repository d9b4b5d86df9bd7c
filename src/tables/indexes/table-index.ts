import type { CheckedIndexConfig, IndexDefinition } from '../../index-kinds/all-kinds.ts';

/** `serving` answers queries and `sync_level: full_text`; `building` will take its place; `extra` was added by a user. */
export type IndexRole = 'serving' | 'building' | 'extra';

export interface TableIndex {
  name: string;
  incarnation: number;
  role: IndexRole;
  /** As it is shown. */
  config: CheckedIndexConfig;
  /** As everything of ours reads it. */
  definition: IndexDefinition;
}
