import type { Clock } from '../../lib/clock.ts';
import type { DemoClient } from './demo-client.ts';
import { ProgressBar } from './progress-bar.ts';
import type { Terminal } from './terminal.ts';
import { type Gloss, wordnetGlossCount, wordnetGlosses } from './wordnet-glosses.ts';

const batchSize = 1_000;
/** Batches in flight: the next one travels while the last is being written. */
const lanes = 2;

/**
 * Writes every gloss through `POST /db/v1/tables/{table}/batch` and returns when the whole load is searchable: the last batch is
 * sent alone, with `sync_level: full_text`. Returns the number of documents.
 */
export async function loadGlosses(options: {
  client: DemoClient;
  table: string;
  directory: string;
  terminal: Terminal;
  clock: Clock;
}): Promise<number> {
  const { client, table } = options;
  const progress = new ProgressBar(options.terminal, options.clock, 'Loading WordNet', wordnetGlossCount);
  const batches = [...batchesOf(wordnetGlosses(options.directory))];
  const last = batches.pop();
  let done = 0;
  const send = async (batch: Gloss[], syncLevel?: string) => {
    await client.writeBatch(table, batchBody(batch, syncLevel));
    done += batch.length;
    progress.show(done);
  };
  const waiting = batches.values();
  const lane = async () => {
    for (const batch of waiting) await send(batch);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  if (last) await send(last, 'full_text');
  return done;
}

function* batchesOf(glosses: Iterable<Gloss>): Generator<Gloss[]> {
  let batch: Gloss[] = [];
  for (const gloss of glosses) {
    batch.push(gloss);
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function batchBody(batch: readonly Gloss[], syncLevel?: string): string {
  const inserts = Object.fromEntries(
    batch.map(({ key, words, gloss, partOfSpeech }) => [key, { words, gloss, part_of_speech: partOfSpeech }]),
  );
  return JSON.stringify(syncLevel === undefined ? { inserts } : { inserts, sync_level: syncLevel });
}
