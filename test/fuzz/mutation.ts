/** The same numbers for the same seed. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0 || 1;
  }

  below(bound: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % bound;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }
}

/** A kept input with some edits: pieces put in, cut out, said twice, taken from another input, single characters. */
export function mutate(random: Random, corpus: readonly string[], pieces: readonly string[], charsMax: number): string {
  let text = random.pick(corpus);
  for (let edits = 1 + random.below(6); edits > 0; edits -= 1) {
    const [from, to] = [random.below(text.length + 1), random.below(text.length + 1)].sort((a, b) => a - b) as [
      number,
      number,
    ];
    const kinds: (() => string)[] = [
      () => text.slice(0, from) + random.pick(pieces) + text.slice(from),
      () => text.slice(0, from) + text.slice(to),
      () => text.slice(0, to) + text.slice(from, to) + text.slice(to),
      () => text.slice(0, from) + random.pick(corpus) + text.slice(to),
      () => text.slice(0, from) + String.fromCharCode(random.below(0x1_0000)) + text.slice(from + 1),
    ];
    text = random.pick(kinds)().slice(0, charsMax);
  }
  return text;
}
