import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { wordnetBodies } from './wordnet-documents.ts';
import { workloadSeed, zipfBody, zipfDocuments } from './zipf-documents.ts';

/** Generated data are kept here between runs; the folder is ignored by git and safe to delete. */
export const cacheDirectory = join(import.meta.dir, '..', '.cache');

/** The result of `make`, from the file of this name in the cache when it is there. */
export function cachedJson<Value>(name: string, make: () => Value): Value {
  const path = join(cacheDirectory, name);
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8'));
  const value = make();
  mkdirSync(cacheDirectory, { recursive: true });
  writeFileSync(`${path}.part`, JSON.stringify(value));
  renameSync(`${path}.part`, path);
  return value;
}

/** Raised whenever a generator changes, so that an old file is never read as a new one. */
const generatorVersion = 2;

/** Where documents come from: a generator with a seed, or the definitions of WordNet. */
export type Corpus = 'zipf' | 'wordnet';

/**
 * Path of a file with the first `count` documents, one JSON object a line, made when missing. The key of line `n` is
 * `zipfKey(n)`. The peers that are not servers read it.
 */
export async function documentFile(
  count: number,
  seed: number = workloadSeed,
  corpus: Corpus = 'zipf',
): Promise<string> {
  mkdirSync(cacheDirectory, { recursive: true });
  const origin = corpus === 'zipf' ? `zipf-v${generatorVersion}-seed${seed}` : `wordnet-v${generatorVersion}`;
  const path = join(cacheDirectory, `${origin}-${count}.ndjson`);
  if (existsSync(path)) return path;
  const unfinished = `${path}.${process.pid}.part`;
  const writer = Bun.file(unfinished).writer({ highWaterMark: 4 << 20 });
  let number = 0;
  for (const body of corpus === 'zipf' ? zipfBodies(seed) : wordnetBodies()) {
    if (number >= count) break;
    writer.write(`${body}\n`);
    number += 1;
    if (number % 10_000 === 0) await writer.flush();
  }
  await writer.end();
  renameSync(unfinished, path);
  return path;
}

function* zipfBodies(seed: number): Generator<string> {
  for (const document of zipfDocuments(seed)) yield zipfBody(document);
}
