/** The tokens that fit into `room`, cut at one end; undefined where they do not fit and may not be cut. */
export function truncateTokens(
  tokens: readonly number[],
  room: number,
  truncate: 'start' | 'end' | undefined,
): readonly number[] | undefined {
  if (tokens.length <= room) return tokens;
  if (truncate === undefined || room <= 0) return undefined;
  return truncate === 'end' ? tokens.slice(0, room) : tokens.slice(-room);
}
