import { readFileSync } from 'node:fs';
import { type Corpus, documentFile } from './document-file.ts';
import { zipfKey } from './zipf-documents.ts';

export interface Batch {
  body: Uint8Array;
  documents: number;
}

/**
 * Ready request bodies for `POST .../batch` over the first `count` documents, `batchSize` documents each, so that the load
 * client spends nothing on JSON while the clock runs. `syncLevel` goes into every body.
 */
export async function batchBodies(
  count: number,
  batchSize: number,
  options: { seed?: number; corpus?: Corpus; syncLevel?: string; lastSyncLevel?: string } = {},
): Promise<Batch[]> {
  const lines = readFileSync(await documentFile(count, options.seed, options.corpus), 'utf8').split('\n');
  const batches: Batch[] = [];
  for (let start = 0; start < count; start += batchSize) {
    const end = Math.min(count, start + batchSize);
    const level = end === count ? (options.lastSyncLevel ?? options.syncLevel) : options.syncLevel;
    batches.push({ body: Buffer.from(batchBody(lines.slice(start, end), start, level)), documents: end - start });
  }
  return batches;
}

/** One body of documents, as lines of JSON; the first has the key of number `first`. */
export function batchBody(lines: readonly string[], first: number, syncLevel: string | undefined): string {
  const inserts = lines.map((line, offset) => `"${zipfKey(first + offset)}":${line}`);
  const level = syncLevel === undefined ? '' : `,"sync_level":"${syncLevel}"`;
  return `{"inserts":{${inserts.join(',')}}${level}}`;
}
