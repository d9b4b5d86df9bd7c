import type { DemoClient, DemoHit } from '../../src/cli/demo/demo-client.ts';
import type { Terminal } from '../../src/cli/demo/terminal.ts';
import { wordnetDirectory, wordnetGlosses } from '../../src/cli/demo/wordnet-glosses.ts';
import { ProgressBar, shownRate } from '../../src/cli/progress-bar.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { readRows, type VectorSet } from '../workloads/vector-set.ts';
import { vectorWords, wordVectors } from '../workloads/word-vectors.ts';

export const table = 'words';
export const indexName = 'meaning';
const batchSize = 1_000;
/** Batches in flight: the next one travels while the last is being written. */
const lanes = 2;

/** The words, the most frequent first, with their vectors in the same order. */
export interface WordSet {
  words: string[];
  vectors: VectorSet;
}

export async function readWords(rows: number): Promise<WordSet> {
  const vectors = await wordVectors(rows, 0);
  return { words: (await vectorWords()).slice(0, vectors.rows), vectors };
}

/** Documents of a word are numbered by how frequent it is. */
export function keyOf(row: number): string {
  return `word:${row.toString().padStart(6, '0')}`;
}

export function rowOf(hit: DemoHit): number {
  return Number(hit.key.slice('word:'.length));
}

/** The members by which words are filtered. */
export function initialOf(word: string): string {
  return [...word][0] ?? '';
}

export function base64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
}

/**
 * Writes every word through the public interface: the word, its first letter, its definition where WordNet has one, and its
 * vector. Returns when all are searchable.
 */
export async function loadWords(
  client: DemoClient,
  { words, vectors }: WordSet,
  terminal: Terminal,
  clock: Clock,
): Promise<void> {
  const index = { type: 'embeddings', external: true, dimension: vectors.dimension, distance_metric: 'cosine' };
  await client.create(`/tables/${table}`, { schema, indexes: { [indexName]: index } });
  const glosses = firstGlosses();
  const progress = new ProgressBar((text) => terminal.write(text), terminal.interactive);
  const startMs = clock.monotonicMs();
  terminal.write('Loading words.\n');
  const body = (first: number, syncLevel?: string) => {
    const rows = readRows(vectors, first, batchSize);
    const inserts: Record<string, object> = {};
    for (const [at, word] of words.slice(first, first + batchSize).entries()) {
      const vector = rows.subarray(at * vectors.dimension, (at + 1) * vectors.dimension);
      const gloss = glosses.get(word);
      inserts[keyOf(first + at)] = {
        words: [word],
        initial: initialOf(word),
        ...(gloss === undefined ? {} : { gloss }),
        _embeddings: { [indexName]: base64(vector) },
      };
    }
    return JSON.stringify({ inserts, ...(syncLevel === undefined ? {} : { sync_level: syncLevel }) });
  };
  const starts = Array.from({ length: Math.ceil(words.length / batchSize) }, (_, batch) => batch * batchSize);
  const waiting = starts.values();
  let done = 0;
  const lane = async () => {
    for (const first of waiting) {
      await client.writeBatch(table, body(first));
      done += Math.min(batchSize, words.length - first);
      progress.show(done, words.length, shownRate(done, 'words', clock.monotonicMs() - startMs));
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  progress.finish();
  await client.writeBatch(table, body(starts.at(-1) ?? 0, 'full_index'));
}

const schema = {
  default_type: 'word',
  document_schemas: {
    word: {
      schema: {
        type: 'object',
        properties: {
          words: { type: 'array', items: { type: 'string' }, 'x-service-types': ['text'] },
          gloss: { type: 'string', 'x-service-types': ['text'] },
          initial: { type: 'string', 'x-service-types': ['keyword'] },
        },
      },
    },
  },
};

function firstGlosses(): Map<string, string> {
  const directory = wordnetDirectory();
  const found = new Map<string, string>();
  if (directory === undefined) return found;
  for (const { words, gloss } of wordnetGlosses(directory)) {
    for (const word of words) if (!found.has(word.toLowerCase())) found.set(word.toLowerCase(), gloss);
  }
  return found;
}
