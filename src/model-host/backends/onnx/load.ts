import { ServiceError } from '../../../protocol/service-error.ts';
import type { Backend, LoadBackend } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import { loadChunker } from './chunker.ts';
import { loadEmbedder } from './embedder.ts';
import { loadExtractor } from './extractor.ts';
import { loadPredictor } from './predictor.ts';
import { loadReranker } from './reranker.ts';
import { loadSeq2Seq } from './seq2seq.ts';
import { loadTranscriber } from './transcriber.ts';

const loaders: { readonly [Kind in ModelSpec['kind']]?: (spec: ModelSpec) => Promise<Backend> } = {
  chunkers: loadChunker,
  embedders: loadEmbedder,
  extractors: loadExtractor,
  readers: loadSeq2Seq,
  rewriters: loadSeq2Seq,
  transcribers: loadTranscriber,
  rerankers: loadReranker,
  predictors: loadPredictor,
};

/** ONNX Runtime on the processor. */
export const load: LoadBackend = async (spec) => {
  const loader = loaders[spec.kind];
  if (loader === undefined) {
    throw new ServiceError('model_load_failed', `${spec.kind} are not run from ONNX files`);
  }
  try {
    return await loader(spec);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new ServiceError('model_load_failed', `the model "${spec.name}" cannot be loaded: ${reason}`, {
      cause: error,
    });
  }
};
