import type { GenerateEvent } from '../../../operations/generate.ts';

export type OutputLogprob = NonNullable<GenerateEvent['logprobs']>[number];

interface HeldLogprob {
  /** Where the text of the token starts and ends, in characters from the start of the output. */
  readonly start: number;
  readonly end: number;
  readonly logprob: OutputLogprob;
}

/**
 * Puts the bytes of tokens together to text that is safe to show: whole characters, and nothing that may turn out to
 * begin a stop text. Invalid UTF-8 shows as U+FFFD; an incomplete last character is left out.
 */
export class OutputText {
  /** The stop text that ended the output. */
  stopText: string | undefined;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #stops: readonly string[];
  readonly #logprobs: HeldLogprob[] = [];
  /** Decoded, but not given out yet. */
  #held = '';
  /** Characters given out. */
  #given = 0;

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== '');
  }

  /** Takes the bytes of one token; gives what may be shown now. Nothing follows once `stopText` is set. */
  push(bytes: Uint8Array, logprob: OutputLogprob | undefined): GenerateEvent | undefined {
    const start = this.#given + this.#held.length;
    this.#held += this.#decoder.decode(bytes, { stream: true });
    if (logprob !== undefined) this.#logprobs.push({ start, end: this.#given + this.#held.length, logprob });
    const [at, stop] = this.#earliestStop();
    if (stop !== undefined) {
      this.stopText = stop;
      this.#held = this.#held.slice(0, at);
      const last = this.#give(this.#held.length, (held) => held.start < this.#given);
      this.#logprobs.length = 0;
      return last;
    }
    return this.#give(this.#held.length - this.#suspectLength(), ({ end }) => end <= this.#given);
  }

  /** The text that was held back, when no more tokens come. */
  finish(): GenerateEvent | undefined {
    return this.#give(this.#held.length, () => true);
  }

  #earliestStop(): readonly [at: number, stop: string | undefined] {
    let found: readonly [number, string | undefined] = [this.#held.length, undefined];
    for (const stop of this.#stops) {
      const at = this.#held.indexOf(stop);
      if (at >= 0 && (at < found[0] || found[1] === undefined)) found = [at, stop];
    }
    return found;
  }

  /** Length of the longest end of the held text that a stop text begins with. */
  #suspectLength(): number {
    let longest = 0;
    for (const stop of this.#stops) {
      for (let length = Math.min(stop.length - 1, this.#held.length); length > longest; length -= 1) {
        if (this.#held.endsWith(stop.slice(0, length))) longest = length;
      }
    }
    return longest;
  }

  #give(length: number, isShown: (held: HeldLogprob) => boolean): GenerateEvent | undefined {
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    this.#given += length;
    let shown = 0;
    while (shown < this.#logprobs.length && isShown(this.#logprobs[shown] as HeldLogprob)) shown += 1;
    const logprobs = this.#logprobs.splice(0, shown).map(({ logprob }) => logprob);
    if (text === '' && logprobs.length === 0) return undefined;
    return logprobs.length === 0 ? { text } : { text, logprobs };
  }
}
