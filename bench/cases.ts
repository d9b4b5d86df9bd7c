import type { BenchCase } from './case.ts';
import { aggregations } from './cases/aggregations.ts';
import { denseClustered, denseWords } from './cases/dense-curves.ts';
import { durableWrite } from './cases/durable-write.ts';
import { eventLoop } from './cases/event-loop.ts';
import { filteredVectors } from './cases/filtered-vectors.ts';
import { httpLayer } from './cases/http-layer.ts';
import { hybridQuery } from './cases/hybrid-query.ts';
import { ingest, ingestWordnet } from './cases/ingest.ts';
import { ingestGrowth } from './cases/ingest-growth.ts';
import { queryLatency } from './cases/query-latency.ts';
import { sparseVectors } from './cases/sparse-vectors.ts';
import { startUp } from './cases/start-up.ts';
import { vectorScale } from './cases/vector-scale.ts';
import { vectorsOverHttp } from './cases/vectors-over-http.ts';
import { visibleWrite } from './cases/visible-write.ts';

/** Every case, in the order in which `bun bench` runs them. */
export const benchCases: readonly BenchCase[] = [
  startUp,
  httpLayer,
  durableWrite,
  visibleWrite,
  ingest,
  ingestWordnet,
  ingestGrowth,
  eventLoop,
  queryLatency,
  aggregations,
  denseWords,
  denseClustered,
  filteredVectors,
  sparseVectors,
  hybridQuery,
  vectorsOverHttp,
  vectorScale,
];
