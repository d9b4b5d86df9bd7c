import { ServiceError } from '../../protocol/service-error.ts';

/** The files do not hold what they should: only a rebuild helps. */
export function isIndexDamage(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'index_damaged' || code === 'index_incompatible';
}

/** The machine lacks room, descriptors or memory for now, which says nothing of the files: a rebuild would lack them as well. */
export function isOfMachine(error: unknown): boolean {
  return error instanceof ServiceError && error.retryable;
}
