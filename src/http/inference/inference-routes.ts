import type { Inference } from '../../inference/inference.ts';
import type { Route } from '../route.ts';
import { chunkRoutes } from './chunk.ts';
import { embeddingRoutes } from './embeddings.ts';
import { extractRoutes } from './extract.ts';
import { generateRoutes } from './generate.ts';
import { generateBatchRoutes } from './generate-batch.ts';
import { modelRoutes } from './models.ts';
import { predictRoutes } from './predict.ts';
import { rerankRoutes } from './rerank.ts';
import { seq2seqRoutes } from './seq2seq.ts';

/** The inference plane: `/ai/v1` and `/ml/v1`. */
export function inferenceRoutes(inference: Inference): Route[] {
  return [
    ...modelRoutes(inference),
    ...chunkRoutes(inference),
    ...generateRoutes(inference),
    ...generateBatchRoutes(inference),
    ...embeddingRoutes(inference),
    ...rerankRoutes(inference),
    ...extractRoutes(inference),
    ...predictRoutes(inference),
    ...seq2seqRoutes(inference),
  ];
}
