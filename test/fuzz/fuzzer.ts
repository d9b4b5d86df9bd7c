import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { checkQueryString } from './check-query-string.ts';
import { checkTemplate } from './check-template.ts';
import { corpusFile, readCorpus } from './corpus.ts';
import { mutate, Random } from './mutation.ts';

// usage: bun test/fuzz/fuzzer.ts query-string|template [--seconds N] [--seed N]
// Mutates the kept inputs; what answers in a new way is kept too. Ends with the input when one breaks a promise.

interface Target {
  readonly pieces: readonly string[];
  readonly charsMax: number;
  /** Kinds of the answers that an input gets. */
  readonly check: (text: string) => readonly string[];
}

const queryPieces = [
  ...'()[]{}"\\/~^:*?+-<>=!& \t\n#,.\'',
  ...['AND', 'OR', 'NOT', 'TO', '&&', '||', ' AND ', ' OR NOT ', '~2', '^0.5', '^1e9', ':>', ':>=', ':<', '[* TO 5]'],
  ...['{a TO b]', '"a b"~3', 'title:', 'a.b.c:', '/a|b+/', 'w?rd*', '2026-01-01', '-1.5', '1e400', '\\:', '\\"'],
  ...['é', '日本', '😀', '\u0000', '\u2028', '\ud800', '𝒳', 'ﬁ', 'İ', 'word', 'field:(a OR b)', '_exists_:x'],
];

const templatePieces = [
  ...[
    '{{',
    '}}',
    '{{{',
    '}}}',
    '{{#',
    '{{/',
    '{{^',
    '{{else}}',
    '{{~',
    '~}}',
    '{{!',
    '--}}',
    '(',
    ')',
    ' as |x|',
    '../',
    '@',
  ],
  ...[
    'this',
    '.',
    '..',
    'a.b',
    '[c d]',
    '@index',
    '@root',
    '"s"',
    "'t'",
    '1e9',
    'true',
    'null',
    'undefined',
    '=',
    ' ',
    '\n',
  ],
  ...[
    '{{#if a}}',
    '{{/if}}',
    '{{#each list}}',
    '{{/each}}',
    '{{#with a}}',
    '{{/with}}',
    '{{#unless n}}',
    '{{/unless}}',
  ],
  ...[
    'eq ',
    'lookup ',
    'scrubHtml ',
    'encodeToon ',
    'media url=',
    ' as="text"',
    ' lengthMarker=',
    ' indent=',
    ' delimiter=',
  ],
  ...[
    'constructor',
    '__proto__',
    'prototype',
    'toString',
    'html',
    'list',
    '<p>',
    '</p>',
    '<script>',
    '\\',
    '\u0000',
    '😀',
  ],
];

const targets: Readonly<Record<string, Target>> = {
  'query-string': {
    pieces: queryPieces,
    charsMax: 160,
    check: (text) => (['and', 'or'] as const).map((operator) => checkQueryString(text, operator)),
  },
  template: {
    pieces: templatePieces,
    charsMax: 400,
    check: (text) => [templateShape(checkTemplate(text))],
  },
};

/** The refusal with its reason, or the rendered parts. */
function templateShape(outcome: string): string {
  if (!outcome.startsWith('[')) return outcome.replace(/line \d+, column \d+|"[^"]*"|\d+/g, '_').slice(0, 80);
  return (JSON.parse(outcome) as (string | object)[]).map((part) => typeof part).join(' ');
}

const { values, positionals } = parseArgs({
  options: { seconds: { type: 'string' }, seed: { type: 'string' } },
  allowPositionals: true,
});
const [name = ''] = positionals;
const target = targets[name];
if (target === undefined) throw new Error(`name a target: ${Object.keys(targets).join(', ')}`);
const seed = Number(values.seed ?? Date.now() % 2 ** 32);
const endMs = Date.now() + Number(values.seconds ?? 60) * 1_000;
const random = new Random(seed);
const corpus = readCorpus(readFileSync(corpusFile(name), 'utf8'));
const known = new Set(corpus.flatMap(target.check));
console.log(`seed ${seed}, ${corpus.length} kept inputs`);
let runs = 0;
while (Date.now() < endMs) {
  const text = mutate(random, corpus, target.pieces, target.charsMax);
  runs += 1;
  try {
    for (const shape of target.check(text)) {
      if (corpus.length >= 400 || known.has(shape)) continue;
      known.add(shape);
      corpus.push(text);
    }
  } catch (error) {
    console.error(`after ${runs} runs of seed ${seed}:\n${JSON.stringify(text)}`);
    throw error;
  }
}
writeFileSync(corpusFile(name), `${corpus.map((text) => JSON.stringify(text)).join('\n')}\n`);
console.log(`${runs} runs, ${corpus.length} kept inputs`);
