/** The cost of starting a run, in the tokens that could have been read meanwhile. */
const startTokens = 32;
/** Waiting inputs that are considered for one batch. */
export const batchWindow = 1_024;

/**
 * Which of the waiting inputs are read in one go: the one that has waited longest and, around it in length, those that
 * are cheaper beside it, filled up to the longest, than in a run of their own. At most `tokensMax` tokens, filling
 * included, unless one input alone has more. `lengths` are those of the inputs in the order in which they came.
 */
export function planBatch(lengths: readonly number[], tokensMax: number): number[] {
  if (lengths.length === 1) return [0];
  const order = lengths
    .slice(0, batchWindow)
    .map((length, index) => ({ length, index }))
    .sort((a, b) => a.length - b.length || a.index - b.index);
  const anchor = order.findIndex(({ index }) => index === 0);
  if (anchor < 0) return [];
  let low = anchor;
  let high = anchor;
  const lengthAt = (at: number) => order[at]?.length ?? Number.NaN;
  const fits = (from: number, to: number, added: number) => {
    const count = to - from + 1;
    const padded = count * lengthAt(to);
    return padded <= tokensMax && padded <= (count - 1) * lengthAt(high) + lengthAt(added) + startTokens;
  };
  for (;;) {
    const shorter = low > 0 && fits(low - 1, high, low - 1);
    const longer = high + 1 < order.length && fits(low, high + 1, high + 1);
    if (!shorter && !longer) break;
    const nearer = lengthAt(anchor) - lengthAt(low - 1) <= lengthAt(high + 1) - lengthAt(anchor);
    if (shorter && (!longer || nearer)) low -= 1;
    else high += 1;
  }
  return order.slice(low, high + 1).map(({ index }) => index);
}
