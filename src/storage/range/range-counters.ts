import type { Database } from 'bun:sqlite';
import { ServiceError } from '../../protocol/service-error.ts';

/** Counters of a range; saved on the last row that a transaction adds to `changes`. */
export interface RangeCounters {
  documents: number;
  /** Of documents and their parts. */
  bytes: number;
  nextOrdinal: number;
  nextSequence: number;
  entryIndex: number;
  /** Last write over several ranges that was applied here. */
  transactionId: number;
  /** Definitions that have parts here; not saved, the parts themselves tell. */
  partIds: readonly number[];
}

/** The last row of `changes` always carries the counters: nothing removes it before a later one exists. */
export function readCounters(database: Database, firstSequence: number): Omit<RangeCounters, 'partIds'> {
  const last = database
    .query(
      'SELECT sequence, documents, bytes, next_ordinal, entry_index, transaction_id FROM changes ' +
        'ORDER BY sequence DESC LIMIT 1',
    )
    .get() as Record<string, number | null> | null;
  if (!last) {
    return { documents: 0, bytes: 0, nextOrdinal: 1, nextSequence: firstSequence, entryIndex: 0, transactionId: 0 };
  }
  const column = (name: string): number => {
    const value = last[name];
    if (typeof value === 'number') return value;
    throw new ServiceError('data_corrupted', `a range file has lost its counters (${name}); run "sundew check"`);
  };
  return {
    documents: column('documents'),
    bytes: column('bytes'),
    nextOrdinal: column('next_ordinal'),
    nextSequence: column('sequence') + 1,
    entryIndex: column('entry_index'),
    transactionId: column('transaction_id'),
  };
}
