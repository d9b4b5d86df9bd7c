import type { Clock } from '../../lib/clock.ts';
import { ProgressBar, shownRate } from '../progress-bar.ts';
import type { DemoClient } from './demo-client.ts';
import { dim, type Terminal } from './terminal.ts';
import { type Gloss, type Pointer, wordnetGlossCount, wordnetGlosses } from './wordnet-glosses.ts';

const batchSize = 1_000;
/** Batches in flight: the next one travels while the last is being written. */
const lanes = 2;

/**
 * Writes every gloss through `POST /db/v1/tables/{table}/batch` and returns when the whole load is searchable, which the index,
 * a little behind the documents, tells by answering one more write with `sync_level: full_index`.
 */
export async function loadGlosses(options: {
  client: DemoClient;
  table: string;
  /** Index of the table that takes the pointers as edges. */
  graph: string;
  directory: string;
  terminal: Terminal;
  clock: Clock;
}): Promise<void> {
  const { client, table, graph, terminal, clock } = options;
  const startMs = clock.monotonicMs();
  const progress = new ProgressBar((text) => terminal.write(text), terminal.interactive);
  terminal.write('Loading WordNet.\n');
  const batches = [...batchesOf(wordnetGlosses(options.directory))];
  const waiting = batches.values();
  let done = 0;
  const lane = async () => {
    for (const batch of waiting) {
      await client.writeBatch(table, batchBody(batch, graph));
      done += batch.length;
      progress.show(done, wordnetGlossCount, shownRate(done, 'documents', clock.monotonicMs() - startMs));
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  progress.finish();
  terminal.write(dim(terminal, 'All documents are durable; the indexes are catching up.\n'));
  const last = batches.at(-1)?.slice(-1) ?? [];
  await client.writeBatch(table, batchBody(last, graph, 'full_index'));
  terminal.write(`Searchable after ${((clock.monotonicMs() - startMs) / 1_000).toFixed(1)} s.\n`);
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

function batchBody(batch: readonly Gloss[], graph: string, syncLevel?: string): string {
  const inserts = Object.fromEntries(
    batch.map(({ key, words, gloss, partOfSpeech, pointers }) => {
      return [key, { words, gloss, part_of_speech: partOfSpeech, _edges: { [graph]: edgesOf(pointers) } }];
    }),
  );
  return JSON.stringify(syncLevel === undefined ? { inserts } : { inserts, sync_level: syncLevel });
}

/** Edges by type, as `_edges` has them. */
function edgesOf(pointers: readonly Pointer[]): Record<string, { target: string }[]> {
  return Object.fromEntries(
    Map.groupBy(pointers, ({ type }) => type)
      .entries()
      .map(([type, all]) => [type, all.map(({ target }) => ({ target }))]),
  );
}
