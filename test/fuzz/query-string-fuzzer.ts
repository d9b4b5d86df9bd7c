import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { checkQueryString } from './check-query-string.ts';
import { corpusFile, readCorpus } from './query-string-corpus.ts';

// usage: bun test/fuzz/query-string-fuzzer.ts [--seconds N] [--seed N]
// Mutates the kept query strings; what answers in a new way is kept too. Ends with the input when one breaks a promise.

const pieces = [
  ...'()[]{}"\\/~^:*?+-<>=!& \t\n#,.\'',
  ...['AND', 'OR', 'NOT', 'TO', '&&', '||', ' AND ', ' OR NOT ', '~2', '^0.5', '^1e9', ':>', ':>=', ':<', '[* TO 5]'],
  ...['{a TO b]', '"a b"~3', 'title:', 'a.b.c:', '/a|b+/', 'w?rd*', '2026-01-01', '-1.5', '1e400', '\\:', '\\"'],
  ...['é', '日本', '😀', '\u0000', '\u2028', '\ud800', '𝒳', 'ﬁ', 'İ', 'word', 'field:(a OR b)', '_exists_:x'],
];

class Random {
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

function mutate(random: Random, corpus: readonly string[]): string {
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
    text = random.pick(kinds)().slice(0, 160);
  }
  return text;
}

const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } });
const seed = Number(values.seed ?? Date.now() % 2 ** 32);
const endMs = Date.now() + Number(values.seconds ?? 60) * 1_000;
const random = new Random(seed);
const corpus = readCorpus(readFileSync(corpusFile, 'utf8'));
const known = new Set(corpus.flatMap((text) => [checkQueryString(text, 'and'), checkQueryString(text, 'or')]));
console.log(`seed ${seed}, ${corpus.length} kept inputs`);
let runs = 0;
while (Date.now() < endMs) {
  const text = mutate(random, corpus);
  runs += 1;
  try {
    for (const operator of ['and', 'or'] as const) {
      const shape = checkQueryString(text, operator);
      if (corpus.length < 400 && !known.has(shape)) {
        known.add(shape);
        corpus.push(text);
      }
    }
  } catch (error) {
    console.error(`after ${runs} runs of seed ${seed}:\n${JSON.stringify(text)}`);
    throw error;
  }
}
writeFileSync(corpusFile, `${corpus.map((text) => JSON.stringify(text)).join('\n')}\n`);
console.log(`${runs} runs, ${corpus.length} kept inputs`);
