/** Drafts tokens that a model then checks in one batch instead of generating them one by one. */
export interface Drafter {
  /** Up to `count` tokens that may follow all tokens so far, prompt included; none where there is no good guess. */
  draft(tokens: readonly number[], count: number): Promise<readonly number[]>;
  /** Frees what the drafter holds for one output. */
  release(): void;
}

/** Longest and shortest end of the text that is looked for earlier in it, in tokens. */
const matchMax = 4;
const matchMin = 2;

/** Guesses that what followed the same few tokens earlier in the text follows again. */
export const promptLookup: Drafter = {
  draft: (tokens, count) => Promise.resolve(lookUp(tokens, count)),
  release: () => undefined,
};

function lookUp(tokens: readonly number[], count: number): readonly number[] {
  for (let length = Math.min(matchMax, tokens.length - 1); length >= matchMin; length -= 1) {
    const end = tokens.length - length;
    for (let at = end - 1; at >= 0; at -= 1) {
      let same = 0;
      while (same < length && tokens[at + same] === tokens[end + same]) same += 1;
      if (same === length) return tokens.slice(at + length, at + length + count);
    }
  }
  return [];
}
