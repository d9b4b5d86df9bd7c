/** The files do not hold what they should: only a rebuild helps. */
export function isIndexDamage(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'index_damaged' || code === 'index_incompatible';
}
