import type { IndexedRange } from '../indexing/indexed-range.ts';
import type { Clock } from '../lib/clock.ts';
import { FrameBuilder, rowKind } from '../lib/document-frame.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { RangeLog } from '../replication/range-log.ts';
import { readTableManifest, type TableManifest } from './archive/manifest.ts';
import { type BackupChain, linksMax, openChain, partIdsOf } from './backup-chain.ts';
import type { ObjectStore } from './stores/object-store.ts';

interface NoteDeps {
  readonly log: RangeLog;
  readonly clock: Clock;
}

/** The note of a range that names the backups which were made of it, by their generations, the newest last. */
const noteKey = 'backups';
/** Backups that a range remembers; with an older one as its base everything is copied. */
export const rememberedMax = 256;

/** The backup that another one leans on, and what of it each range need not copy again. */
export class BackupBase {
  readonly id: string;
  readonly #generation: string;
  readonly #tables: ReadonlyMap<string, TableManifest>;

  private constructor({ cluster }: BackupChain, tables: ReadonlyMap<string, TableManifest>) {
    this.id = cluster.backup_id;
    this.#generation = cluster.generation;
    this.#tables = tables;
  }

  /** With a backup missing that the base leans on, nothing could be restored that leans on the base: it throws as `openChain`. */
  static async open(store: ObjectStore, id: string): Promise<BackupBase> {
    const chain = await openChain(store, id);
    if (chain.length >= linksMax) {
      const message = `"${id}" is the last of ${chain.length} backups that lean on each other; make one without a base`;
      throw new ServiceError('invalid_request', message);
    }
    const tables = new Map<string, TableManifest>();
    for (const each of chain.cluster.tables) tables.set(each.name, await readTableManifest(store, each));
    return new BackupBase(chain, tables);
  }

  /**
   * The last change of a range that the base has; null where everything is to be copied: the base has another range or none, it
   * was made of a history that is not the range's (a data directory that was put back to an earlier time), or it lacks one of
   * `parts` that the table had given by then, as an index has that takes over the vectors of a dropped one.
   */
  headOf(tableName: string, { stored }: IndexedRange, parts: readonly number[]): number | null {
    const { rangeId, ownSince, head } = stored.info();
    const table = this.#tables.get(tableName);
    const found = table?.ranges.find((each) => each.range_id === rangeId && each.first_sequence === ownSince);
    if (!table || !found || found.head > head || !rememberedBy(stored).includes(this.#generation)) return null;
    const had = new Set(partIdsOf(table));
    return parts.every((part) => had.has(part) || part > table.last_part_id) ? found.head : null;
  }
}

/**
 * Has ranges remember that a backup was made of them. One that cannot be written now does not, and copies everything next
 * time.
 */
export async function remember(
  { log, clock }: NoteDeps,
  ranges: readonly IndexedRange[],
  generation: string,
): Promise<void> {
  const writes = ranges.map(({ rangeId, stored }) => {
    const generations = [...rememberedBy(stored), generation].slice(-rememberedMax);
    const frame = new FrameBuilder(1);
    frame.append(rowKind.state, noteKey, new TextEncoder().encode(generations.join(' ')));
    return { rangeId, frame: frame.finish() };
  });
  const timeMs = clock.nowMs();
  try {
    await log.append({ writes, requestId: 'backup', timeMs, timestamp: new Date(timeMs).toISOString() });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

function rememberedBy({ notes }: IndexedRange['stored']): string[] {
  const note = notes.get(noteKey);
  return note ? Buffer.from(note).toString().split(' ') : [];
}
