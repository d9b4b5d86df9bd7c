import type { OutputDelta } from '../../../inference/generation/output-parser.ts';
import type { TokenLogprob } from '../../../model-host/operations/generate.ts';

type Token = TokenLogprob & { readonly top: readonly TokenLogprob[] };

/**
 * Finds the tokens that spell the messages among all that were generated: those of thoughts, calls and the marks around them
 * belong to no message.
 */
export class MessageLogprobs {
  /** Tokens that no piece of the output has come from yet. */
  #held: readonly Token[] = [];

  /** The tokens of each piece; none for pieces of something else than a message. `tokens` are those that came with them. */
  of(deltas: readonly OutputDelta[], tokens: readonly Token[]): (readonly Token[])[] {
    let before = [...this.#held, ...tokens];
    if (before.length === 0 || deltas.length === 0) {
      this.#held = before;
      return deltas.map(() => []);
    }
    let behind: readonly Token[] | undefined;
    // Marks stand in front of what they mark: from the end, the first place where a piece is found is its own.
    const found = deltas.toReversed().map((delta) => {
      const [from, to] = placeOf('text' in delta ? delta.text : delta.name, before);
      behind ??= before.slice(to);
      const own = before.slice(from, to);
      before = before.slice(0, from);
      return delta.kind === 'content' ? own : [];
    });
    this.#held = behind ?? [];
    return found.toReversed();
  }
}

/** The tokens that the last occurrence of `text` reaches into; all of them where it is spelt otherwise. */
function placeOf(text: string, tokens: readonly Token[]): readonly [from: number, to: number] {
  const at = Buffer.from(tokens.flatMap(({ bytes }) => [...bytes])).lastIndexOf(text);
  if (at < 0) return [0, tokens.length];
  const end = at + Buffer.byteLength(text);
  let [from, to, read] = [0, 0, 0];
  for (const { bytes } of tokens) {
    if (read < end) to += 1;
    read += bytes.length;
    if (read <= at) from += 1;
  }
  return [from, to];
}
