import type { BenchCase } from './case.ts';
import { access } from './cases/access.ts';
import { aggregations } from './cases/aggregations.ts';
import { algebraic } from './cases/algebraic.ts';
import { backup } from './cases/backup.ts';
import { bytesBesideLucene } from './cases/bytes-beside-lucene.ts';
import { coldModel } from './cases/cold-model.ts';
import { denseClustered, denseWords } from './cases/dense-curves.ts';
import { durableWrite } from './cases/durable-write.ts';
import { effortCurve } from './cases/effort-curve.ts';
import { embed } from './cases/embed.ts';
import { enrichment } from './cases/enrichment.ts';
import { eventLoop } from './cases/event-loop.ts';
import { filteredVectors } from './cases/filtered-vectors.ts';
import { firstQuery } from './cases/first-query.ts';
import { generateDecode, generateParallel, generatePrefix, generateQuantised } from './cases/generate.ts';
import { generateGpu } from './cases/generate-gpu.ts';
import { graphOverHttp } from './cases/graph-over-http.ts';
import { graphSearches } from './cases/graph-searches.ts';
import { httpLayer } from './cases/http-layer.ts';
import { hybridQuery } from './cases/hybrid-query.ts';
import { imageResize } from './cases/image-resize.ts';
import { ingest, ingestWordnet } from './cases/ingest.ts';
import { ingestGrowth } from './cases/ingest-growth.ts';
import { keyedWrite } from './cases/keyed-write.ts';
import { manyTables } from './cases/many-tables.ts';
import { msgpack } from './cases/msgpack.ts';
import { queryLatency } from './cases/query-latency.ts';
import { queriesUnderIngest, queryOverHttp } from './cases/query-load.ts';
import { sparseVectors } from './cases/sparse-vectors.ts';
import { sse } from './cases/sse.ts';
import { startUp } from './cases/start-up.ts';
import { sustainedWrites } from './cases/sustained-writes.ts';
import { textBesideLucene } from './cases/text-beside-lucene.ts';
import { textBesideOpenSearch } from './cases/text-beside-opensearch.ts';
import { textBesideZvec } from './cases/text-beside-zvec.ts';
import { filterOnePercent, textInProcess } from './cases/text-in-process.ts';
import { vectorScale } from './cases/vector-scale.ts';
import { vectorsOverHttp } from './cases/vectors-over-http.ts';
import { visibleWrite } from './cases/visible-write.ts';

/** Every case, in the order in which `bun bench` runs them. */
export const benchCases: readonly BenchCase[] = [
  startUp,
  httpLayer,
  access,
  durableWrite,
  keyedWrite,
  visibleWrite,
  ingest,
  ingestWordnet,
  ingestGrowth,
  sustainedWrites,
  eventLoop,
  manyTables,
  backup,
  queryLatency,
  firstQuery,
  textInProcess,
  textBesideZvec,
  textBesideLucene,
  bytesBesideLucene,
  textBesideOpenSearch,
  filterOnePercent,
  queryOverHttp,
  queriesUnderIngest,
  aggregations,
  algebraic,
  denseWords,
  denseClustered,
  filteredVectors,
  effortCurve,
  sparseVectors,
  hybridQuery,
  graphSearches,
  graphOverHttp,
  vectorsOverHttp,
  msgpack,
  vectorScale,
  imageResize,
  embed,
  enrichment,
  sse,
  coldModel,
  generateDecode,
  generateQuantised,
  generatePrefix,
  generateParallel,
  generateGpu,
];
