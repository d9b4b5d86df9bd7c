import { type SyncLevel, syncLevels } from '../../protocol/database/writes.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/**
 * Which indexes a write waits for before it is answered; `enrichments` also has its documents embedded before anything is
 * written. The document itself is always durable by then.
 */
export type IndexWait = 'none' | 'full_text' | 'all' | 'enrichments';

/** From the one that waits longest. */
const waitsByStrength: readonly IndexWait[] = ['enrichments', 'all', 'full_text'];

export function strongest(waits: readonly IndexWait[]): IndexWait {
  return waitsByStrength.find((wait) => waits.includes(wait)) ?? 'none';
}

/** Reads `sync_level`. */
export function readSyncLevel(value: unknown, fallback: SyncLevel): IndexWait {
  const level = value ?? fallback;
  if (!(syncLevels as readonly unknown[]).includes(level)) {
    throw new ServiceError('invalid_request', `"sync_level" must be one of ${syncLevels.join(', ')}`);
  }
  switch (level as SyncLevel) {
    case 'propose':
    case 'write':
      return 'none';
    case 'full_text':
      return 'full_text';
    case 'enrichments':
      return 'enrichments';
    case 'full_index':
    case 'aknn':
      return 'all';
  }
}

/** The texts that `readSyncLevel` reads as this level. */
export function syncLevelOf(wait: IndexWait): SyncLevel {
  switch (wait) {
    case 'none':
      return 'propose';
    case 'all':
      return 'full_index';
    default:
      return wait;
  }
}
