import { ServiceError } from '../../protocol/service-error.ts';

/** Why a range cannot be backed up, with the document's key in the details. */
export function damagedDocument(key: string): ServiceError {
  const message = `the document "${key}" does not match its checksum: write it again or delete it, then back up`;
  return new ServiceError('data_corrupted', message, { details: { key } });
}
