import type { Inference } from '../../inference/inference.ts';
import { audioRoutes } from '../clients/audio.ts';
import { completionRoutes } from '../clients/completions.ts';
import { ollamaEmbedRoutes } from '../clients/ollama/embed.ts';
import { ollamaGenerationRoutes } from '../clients/ollama/generate.ts';
import { ollamaModelRoutes } from '../clients/ollama/models.ts';
import { textRerankRoutes } from '../clients/rerank.ts';
import { responsesRoutes } from '../clients/responses/responses.ts';
import { teiRoutes } from '../clients/tei.ts';
import { tokenRoutes } from '../clients/tokens.ts';
import type { Route } from '../routing/route.ts';
import { chunkRoutes } from './chunk.ts';
import { embeddingRoutes } from './embeddings.ts';
import { extractRoutes } from './extract.ts';
import { generateRoutes } from './generation/generate.ts';
import { generateBatchRoutes } from './generation/generate-batch.ts';
import { loadedModelRoutes } from './loaded-models.ts';
import { modelRoutes } from './models.ts';
import { predictRoutes } from './predict.ts';
import { rerankRoutes } from './rerank.ts';
import { seq2seqRoutes } from './seq2seq.ts';

/** The inference plane: `/ai/v1` with its alias `/v1`, `/ml/v1`, and routes of other servers that clients know. */
export function inferenceRoutes(inference: Inference): Route[] {
  const plane = [
    ...modelRoutes(inference),
    ...loadedModelRoutes(inference),
    ...chunkRoutes(inference),
    ...generateRoutes(inference),
    ...generateBatchRoutes(inference),
    ...completionRoutes(inference),
    ...embeddingRoutes(inference),
    ...rerankRoutes(inference),
    ...extractRoutes(inference),
    ...predictRoutes(inference),
    ...seq2seqRoutes(inference),
    ...textRerankRoutes(inference),
    ...teiRoutes(inference),
    ...tokenRoutes(inference),
    ...audioRoutes(inference),
    ...ollamaGenerationRoutes(inference),
    ...ollamaEmbedRoutes(inference),
    ...ollamaModelRoutes(inference),
    ...responsesRoutes(inference),
  ];
  return [...plane, ...aliases(plane)];
}

/** `/v1/...` beside `/ai/v1/...`, where clients look that only know a host. */
function aliases(plane: readonly Route[]): Route[] {
  return plane
    .filter(({ path }) => path.startsWith('/ai/v1/'))
    .map((route) => ({ ...route, path: route.path.slice('/ai'.length), hidden: true }));
}
