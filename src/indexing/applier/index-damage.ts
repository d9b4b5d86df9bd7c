import { ServiceError } from '../../protocol/service-error.ts';

/** The files do not hold what they should, or are of another format: only a rebuild helps. */
export function isIndexDamage(error: unknown): boolean {
  return codeOf(error) === 'index_damaged' || isOutdated(error);
}

/** The files are sound, and were made by another release or for another definition. */
export function isOutdated(error: unknown): boolean {
  return codeOf(error) === 'index_incompatible';
}

/** The reason of a rebuild after this error. */
export function rebuildReason(error: unknown): string {
  if (isOutdated(error)) return 'outdated';
  return isIndexDamage(error) ? 'damage' : 'failures';
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** The machine lacks room, descriptors or memory for now, which says nothing of the files: a rebuild would lack them as well. */
export function isOfMachine(error: unknown): boolean {
  return error instanceof ServiceError && error.retryable;
}
