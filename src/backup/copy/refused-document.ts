import { ServiceError } from '../../protocol/service-error.ts';
import { lineBytesMax } from '../archive/archive-line.ts';

/** Why a range cannot be backed up, with the document's key in the details. */
export function damagedDocument(key: string): ServiceError {
  const message = `the document "${key}" does not match its checksum: write it again or delete it, then back up`;
  return new ServiceError('data_corrupted', message, { details: { key } });
}

/** The same where a document has more artifacts and vectors than a line of an archive takes. */
export function longDocument(key: string): ServiceError {
  const size = `more than ${lineBytesMax} bytes with its artifacts and vectors in base64`;
  const message = `the document "${key}" has ${size}, which a backup does not take: drop some of them, then back up`;
  return new ServiceError('limit_exceeded', message, { details: { key } });
}
