import { ServiceError } from '../../protocol/service-error.ts';
import type { StoredDocument } from '../../storage/reader/document-store.ts';
import type { TableLease } from '../table.ts';

/** The rows of a range in pages, by their keys. Fails with `data_corrupted` where one is damaged. */
export function* rowPages(
  documents: TableLease['ranges'][number]['stored']['documents'],
): Generator<readonly StoredDocument[]> {
  for (let from = { fromKey: '', fromInclusive: true }; ; ) {
    const page = documents.page({ ...from, toKey: null, toInclusive: false });
    const [damaged] = page.damaged;
    if (damaged)
      throw new ServiceError('data_corrupted', `the row ${JSON.stringify(damaged.key.slice(0, 64))} is damaged`);
    if (page.documents.length > 0) yield page.documents;
    if (!page.more || page.lastKey === undefined) return;
    from = { fromKey: page.lastKey, fromInclusive: false };
  }
}
