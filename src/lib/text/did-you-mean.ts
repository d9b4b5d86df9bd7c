/** Longer words are not worth a guess, and would make the comparison slow. */
const wordCharsMax = 64;

/** The candidate that a misspelt word most likely meant, or undefined when none is near. */
export function didYouMean(word: string, candidates: Iterable<string>): string | undefined {
  if (word === '' || word.length > wordCharsMax) return undefined;
  const wanted = fold(word);
  let best: string | undefined;
  let bestDistance = Math.min(3, Math.floor(wanted.length / 3)) + 1;
  if (wanted.length <= 2) bestDistance = 2;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, fold(candidate), bestDistance - 1);
    if (distance < bestDistance && distance < wanted.length) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Shorter beginnings are shared by too many words. */
const beginningCharsMin = 4;

/**
 * The known member that an unknown one was meant to be, or undefined when it resembles none: one that has the name as a
 * word of its own (`usage` of `include_usage`), or as the beginning of a word, or one that a slip away spells.
 */
export function memberMeant(name: string, known: readonly string[]): string | undefined {
  return known.find((each) => isWordOf(name, each)) ?? didYouMean(name, known);
}

function isWordOf(name: string, member: string): boolean {
  return member.split('_').some((word) => word === name || (name.length >= beginningCharsMin && word.startsWith(name)));
}

/** ` Did you mean "limit"?`, to be appended to a sentence; empty when there is no guess. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const guess = didYouMean(word, candidates);
  return guess === undefined ? '' : ` Did you mean "${guess}"?`;
}

function fold(word: string): string {
  return word.toLowerCase().replaceAll('-', '_');
}

/** Edits (insert, delete, replace, swap of neighbours) from one word to the other; `bound + 1` when there are more. */
function editDistance(from: string, to: string, bound: number): number {
  if (Math.abs(from.length - to.length) > bound) return bound + 1;
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (swapped) cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return Math.min(last[to.length] ?? 0, bound + 1);
}
