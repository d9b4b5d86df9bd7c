import type { TextTokenizer } from './text-tokenizer.ts';

/** The words of a text, with the tokens of each: where a token comes from is known by its word. */
export interface TextWords {
  /** Places in units of the string; the end is exclusive. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  readonly ids: readonly (readonly number[])[];
}

/** Splits at spaces. Words behind the first are read with a space in front, which many tokenizers care about. */
export function textWords(tokenizer: TextTokenizer, text: string): TextWords {
  const starts: number[] = [];
  const ends: number[] = [];
  const ids: (readonly number[])[] = [];
  for (const match of text.matchAll(/\S+/g)) {
    const [word] = match;
    starts.push(match.index);
    ends.push(match.index + word.length);
    ids.push(tokenizer.plain(starts.length === 1 ? word : ` ${word}`));
  }
  return { starts, ends, ids };
}

/** Words that are read together: `from` to `to`, of which those from `first` to `last` count. */
export interface WordWindow {
  readonly from: number;
  readonly to: number;
  readonly first: number;
  readonly last: number;
}

/**
 * Windows of at most `tokensMax` tokens over words of these lengths. They overlap by a quarter, and each word counts
 * where it has the most around it. A word that is longer than a window is read as far as it fits.
 */
export function wordWindows(lengths: readonly number[], tokensMax: number): WordWindow[] {
  const windows: { from: number; to: number }[] = [];
  let from = 0;
  while (from < lengths.length) {
    let to = from;
    let tokens = 0;
    while (to < lengths.length && (to === from || tokens + (lengths[to] ?? 0) <= tokensMax)) {
      tokens += lengths[to] ?? 0;
      to += 1;
    }
    windows.push({ from, to });
    if (to === lengths.length) break;
    let back = to;
    let repeated = 0;
    while (back > from + 1 && repeated + (lengths[back - 1] ?? 0) <= tokensMax / 4) {
      back -= 1;
      repeated += lengths[back] ?? 0;
    }
    from = back;
  }
  const middle = (at: number) => {
    const [left, right] = [windows[at], windows[at + 1]];
    return left === undefined || right === undefined ? undefined : Math.ceil((right.from + left.to) / 2);
  };
  return windows.map((window, at) => ({
    ...window,
    first: at === 0 ? 0 : (middle(at - 1) ?? window.from),
    last: middle(at) ?? window.to,
  }));
}
