import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { Backend, LoadBackend, OperationHandlers } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import { type TokenizerOfModel, tokenHandlers } from '../../token-handlers.ts';
import { loadChunker } from './chunker.ts';
import { loadEmbedder } from './embedder.ts';
import { loadExtractor } from './extractor.ts';
import { loadPredictor } from './predictor.ts';
import { loadReranker } from './reranker.ts';
import { loadSeq2Seq } from './seq2seq.ts';
import { loadTranscriber } from './sound/transcriber.ts';
import { TextTokenizer } from './text/text-tokenizer.ts';

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

/** The vocabulary operations of models that read or write text; the vocabulary is read when it is first asked for. */
function tokensOf({ model }: ModelSpec): OperationHandlers {
  if (model === undefined || !existsSync(join(model.directory, 'tokenizer.json'))) return {};
  let opened: TokenizerOfModel | undefined;
  return tokenHandlers(() => {
    if (opened !== undefined) return opened;
    const tokenizer = new TextTokenizer(model.directory);
    opened = {
      size: tokenizer.vocabularySize,
      encode: (text) => tokenizer.plain(text),
      framed: (tokens) => [...tokenizer.framed(tokens).ids],
      textOf: (token) => tokenizer.textOf(token),
      isControl: (token) => tokenizer.specialTexts.includes(tokenizer.textOf(token)),
      decode: (tokens) => tokenizer.decode(tokens),
    };
    return opened;
  });
}

/** ONNX Runtime on the processor. */
export const load: LoadBackend = async (spec) => {
  const loader = loaders[spec.kind];
  if (loader === undefined) {
    throw new ServiceError('model_load_failed', `${spec.kind} are not run from ONNX files`);
  }
  try {
    const backend = await loader(spec);
    return { ...backend, handlers: { ...tokensOf(spec), ...backend.handlers } };
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    const message = `the model "${spec.name}" cannot be loaded: ONNX Runtime refuses its files; the log has the details`;
    throw new ServiceError('model_load_failed', message, { cause: error });
  }
};
