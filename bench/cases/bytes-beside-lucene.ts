import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import { requestBytes } from '../client/http-connection.ts';
import { medianRoundTrips } from '../client/round-trips.ts';
import { startLucene } from '../engines/lucene-speed.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { median } from '../measure/statistics.ts';
import { untilIdle } from '../measure/until-idle.ts';
import { findJava } from '../processes/java.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';
import { documentFile } from '../workloads/document-file.ts';
import { queryString, textQueries } from '../workloads/text-queries.ts';
import { ingestBatchSize } from './ingest-load.ts';

const indexed = { smoke: 20_000, full: 100_000, scale: 1_000_000 } as const;
const queryCount = { smoke: 20, full: 60, scale: 60 } as const;
/** Each query is asked so often in one turn; its median counts. */
const repeats = 15;

export const bytesBesideLucene: BenchCase = {
  name: 'bytes-beside-lucene',
  summary:
    'bytes of documents and text index, bodies as written and compressed, beside Lucene 10 with its stored source',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, seed, tier } = context;
  const documents = indexed[tier];
  context.progress(`loading ${documents} documents twice`);
  await using written = await Loaded.start(context, false);
  await using packed = await Loaded.start(context, true);
  const notes = { documents };
  const perDocument = (bytes: number) => [bytes / documents];
  const bytes = (name: string, of: (loaded: Loaded) => number) =>
    compare({
      name,
      unit: 'B/doc',
      ours: perDocument(of(packed)),
      peer: { name: 'bodies as written', values: perDocument(of(written)) },
      notes,
    });
  const comparisons = [
    bytes('documents', ({ documentBytes }) => documentBytes),
    bytes('index', ({ indexBytes }) => indexBytes),
  ];
  const found = await findJava();
  if ('missing' in found) context.progress(`LEFT OUT beside Lucene: ${found.missing}`);
  else {
    using directory = new TemporaryDirectory();
    const queries = join(directory.path, 'none.ndjson');
    await Bun.write(queries, '');
    const file = await documentFile(documents, seed);
    context.progress('Lucene: indexing, with the source of each document');
    await using lucene = await startLucene({
      java: found.java,
      documents: file,
      queries,
      stores: true,
      placement,
    });
    const peer = { name: 'Lucene with its stored source', values: perDocument(lucene.bytes) };
    const everything = (name: string, { documentBytes, indexBytes }: Loaded, aim?: number) =>
      compare({
        name,
        unit: 'B/doc',
        ours: perDocument(documentBytes + indexBytes),
        peer,
        ...(aim === undefined ? {} : { aim: { kind: 'at_most', value: aim } as const }),
        notes,
      });
    comparisons.push(everything('everything-as-written', written), everything('everything', packed, 1.2));
  }
  context.progress('asking for pages of ten');
  const pages = await alternate(
    { packed: () => packed.pages(context), written: () => written.pages(context) },
    context.pairs,
  );
  const page = compare({
    name: 'page-of-ten',
    unit: 'us',
    ours: pages.packed,
    peer: { name: 'bodies as written', values: pages.written },
    aim: { kind: 'at_most', value: 1.1 },
    notes,
  });
  return [...comparisons, page];
}

/** A server at rest with all documents, and what they take on disk. */
class Loaded implements AsyncDisposable {
  readonly documentBytes: number;
  readonly indexBytes: number;
  readonly #server: SundewServer;

  private constructor(server: SundewServer, bytes: { documents: number; index: number }) {
    this.#server = server;
    this.documentBytes = bytes.documents;
    this.indexBytes = bytes.index;
  }

  static async start({ placement, seed, tier }: BenchContext, compresses: boolean): Promise<Loaded> {
    const options = { placement, environment: { SUNDEW__STORAGE__COMPRESS_BODIES: String(compresses) } };
    const server = await SundewServer.start(options);
    await server.createTable('texts');
    await server.load('texts', await batchBodies(indexed[tier], ingestBatchSize, { seed, lastSyncLevel: 'full_text' }));
    // Segments are merged once the table rests.
    await untilIdle(() => server.process.cpuUs());
    let bytes = { documents: 0, index: 0 };
    const prepare = async (directory: string) => {
      bytes = bytesOf(join(directory, 'ranges'));
    };
    await server.restart({ ...options, prepare });
    return new Loaded(server, bytes);
  }

  /** The median over the queries of the round trip of a page of whole documents, in microseconds. */
  async pages({ seed, tier }: BenchContext): Promise<number> {
    const queries = textQueries(indexed[tier], queryCount[tier], seed).filter((query) => query.class === 'or');
    const messages = queries.map((query) => {
      const request = { full_text_search: { query: queryString(query) }, limit: 10 };
      return requestBytes('POST', '/db/v1/tables/texts/query', JSON.stringify(request));
    });
    // The other server is at rest.
    return median(await medianRoundTrips(this.#server.port, messages, repeats));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]();
  }
}

/** On disk: blocks of zeros take no room there. */
function bytesOf(directory: string): { documents: number; index: number } {
  const sum = { documents: 0, index: 0 };
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    sum[path.includes('/indexes/') ? 'index' : 'documents'] += statSync(path).blocks * 512;
  }
  return sum;
}
