import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { workloadSeed, zipfBody, zipfDocuments } from './zipf-documents.ts';

/** Generated data are kept here between runs; the folder is ignored by git and safe to delete. */
export const cacheDirectory = join(import.meta.dir, '..', '.cache');

/** Raised whenever a generator changes, so that an old file is never read as a new one. */
const generatorVersion = 2;

/**
 * Path of a file with the first `count` documents, one JSON object a line, made when missing. The key of line `n` is
 * `zipfKey(n)`. The peers that are not servers read it.
 */
export async function documentFile(count: number, seed: number = workloadSeed): Promise<string> {
  mkdirSync(cacheDirectory, { recursive: true });
  const path = join(cacheDirectory, `zipf-v${generatorVersion}-seed${seed}-${count}.ndjson`);
  if (existsSync(path)) return path;
  const unfinished = `${path}.${process.pid}.part`;
  const writer = Bun.file(unfinished).writer({ highWaterMark: 4 << 20 });
  let number = 0;
  for (const document of zipfDocuments(seed)) {
    if (number >= count) break;
    writer.write(`${zipfBody(document)}\n`);
    number += 1;
    if (number % 10_000 === 0) await writer.flush();
  }
  await writer.end();
  renameSync(unfinished, path);
  return path;
}
