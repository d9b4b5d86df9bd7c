/** The tokens that fit, or undefined where they do not and may not be cut. */
export function cutToFit(
  tokens: readonly number[],
  most: number,
  truncate: 'start' | 'end' | undefined,
): readonly number[] | undefined {
  if (tokens.length <= most) return tokens;
  if (truncate === undefined || most <= 0) return undefined;
  return truncate === 'end' ? tokens.slice(0, most) : tokens.slice(-most);
}
