import type { IndexDefinition } from '../index-kinds/all-kinds.ts';
import type { Clock } from '../lib/clock.ts';
import type { RangeLog } from '../replication/range-log.ts';
import type { RangeReader } from '../storage/reader/range-reader.ts';
import type { ApplierEvents, ApplierOptions } from './applier/applier-deps.ts';
import type { OpenArtifactProducer, OpenPartProducer } from './enrichment/part-producer.ts';
import type { OpenRangeIndex } from './range-index.ts';
import type { WriterBudget } from './writer-budget.ts';

/** Opens the native index of a definition below a range's directory. */
export type RangeIndexOpener = (indexesDirectory: string, definition: IndexDefinition) => OpenRangeIndex;

interface IndexedRangeOptions extends ApplierOptions {
  /** `writerIdleMs` of an index of vectors. */
  vectorWriterIdleMs: number;
  /** Bytes that may wait for a live index before writes wait. */
  backlogBytesMax: number;
}

/** The services of one range with its indexes. */
export interface IndexedRangeDeps {
  stored: RangeReader;
  /** Where the entries of the range come from. */
  log: Pick<RangeLog, 'subscribe'>;
  /** Where the range's indexes live. */
  indexesDirectory: string;
  openIndex: RangeIndexOpener;
  /** Has the files of an index removed that was dropped and closed. */
  removeIndexFiles(indexesDirectory: string, definition: IndexDefinition): void;
  clock: Clock;
  options: IndexedRangeOptions;
  onIndexEvent(rangeId: number, definition: IndexDefinition): ApplierEvents;
  writers?: WriterBudget;
  /** As in `DamageWatch`. */
  mayDoubt?(definition: IndexDefinition): boolean;
  /** Makes the parts of indexes that the server makes itself. */
  openProducer?: OpenPartProducer;
  /** Makes the artifacts of the table's enrichments. */
  openArtifact?: OpenArtifactProducer;
  /** Whether the table's documents expire. */
  hasTtl(): boolean;
}
