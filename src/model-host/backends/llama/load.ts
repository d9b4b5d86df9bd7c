import { join } from 'node:path';
import { must } from '../../../lib/assert.ts';
import { readGgufHeader } from '../../../models/headers/gguf-header.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { installedGpus } from '../../available-backends.ts';
import type { Backend, LoadBackend } from '../../backend.ts';
import type { HostMemory } from '../../child/host-memory.ts';
import type { ModelSpec } from '../../model-spec.ts';
import { tokenHandlers } from '../../token-handlers.ts';
import { unwatched } from '../unwatched.ts';
import { type OpenBinding, openBinding, openModel } from './binding.ts';
import { Embedder } from './embedder.ts';
import { Generator, type GeneratorDeps } from './generation/generator.ts';
import { PooledContext } from './pooled-context.ts';
import { Reranker } from './reranker.ts';
import { threadsFor } from './thread-probe.ts';
import { Vocabulary } from './vocabulary.ts';

/** Their decoder needs the state of an encoder, which the binding cannot run before it. */
const twoPartArchitectures: readonly string[] = ['t5', 't5encoder'];
/** Lines of llama.cpp's complaints that are kept. */
const linesKept = 4;

export const load: LoadBackend = async (spec, memory) => {
  const lines: string[] = [];
  const opened = await openBinding(spec.cpuOnly === true ? [] : installedGpus(), (text) => {
    lines.push(text.trim());
    // Where native code ends the process, nothing else tells why.
    process.stderr.write(`${text.trim()}\n`);
    if (lines.length > linesKept) lines.shift();
  });
  const takeLines = async () => {
    // They come by way of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    return lines.splice(0).join('; ');
  };
  try {
    return await openBackend(opened, spec, memory);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    // The messages of llama.cpp about it are for the log.
    const cause = new Error(await takeLines(), { cause: error });
    throw new ServiceError('model_load_failed', `the model "${spec.name}" could not be loaded: ${reason}`, { cause });
  }
};

async function openBackend(opened: OpenBinding, spec: ModelSpec, memory: HostMemory): Promise<Backend> {
  const installed = must(spec.model, 'a model of llama.cpp is an installed one');
  const path = join(installed.directory, installed.weights);
  // The files may have changed since they were found.
  const header = readGgufHeader(path);
  const vocabularySize = header.arrays.get('tokenizer.ggml.tokens') ?? 0;
  if (vocabularySize === 0) throw new Error('it has no vocabulary');
  const architecture = String(header.values.get('general.architecture'));
  if (twoPartArchitectures.includes(architecture)) {
    throw new Error(`models of an encoder and a decoder (${architecture}) are run as ONNX only`);
  }
  const { binding, device } = opened;
  const model = await openModel(opened, path, header);
  const vocabulary = new Vocabulary(model, vocabularySize);
  // Two native calls for each token leave some 10 MB behind, which would lie beside the state.
  Bun.gc(true);
  const trained = installed.manifest.context_length ?? model.getTrainContextSize();
  const contextTokens = Math.min(trained, spec.settings.contextTokensMax);
  const { name, settings } = spec;
  const canRewind = !binding.getIsArchRecurrent(architecture) && !binding.getIsArchHybrid(architecture);
  const shared = { binding, model, vocabulary, contextTokens, name, settings, device };
  if (spec.kind === 'embedders')
    return complete(await openEmbedder(shared, installed.manifest.normalize ?? true), shared);
  if (spec.kind === 'rerankers') {
    const template = header.values.get('tokenizer.chat_template.rerank');
    const answersChance = ['qwen3', 'qwen3vl'].includes(architecture);
    const reranker = await openReranker(shared, typeof template === 'string' ? template : undefined, answersChance);
    return complete(reranker, shared);
  }
  const tokenBytes = installed.kvCacheBytesPerToken ?? 0;
  return complete(await openGenerator({ ...shared, canRewind, tokenBytes, memory }), shared);
}

/** Adds the members that every kind of model has. */
function complete({ info, handlers, ...backend }: Backend, { vocabulary, device }: SharedDeps): Backend {
  return {
    ...backend,
    info: { ...info, device },
    handlers: { ...handlers, ...tokenHandlers(() => vocabulary) },
  };
}

type SharedDeps = Omit<GeneratorDeps, 'canRewind' | 'tokenBytes' | 'memory'>;

async function openPooled(deps: SharedDeps, ranking: boolean): Promise<PooledContext> {
  const { binding, model, contextTokens, settings, device } = deps;
  return await PooledContext.open({ binding, model, contextTokens, ranking }, (context) =>
    threadsFor({ context, device, set: settings.threads, sequences: 1 }),
  );
}

async function openEmbedder(deps: SharedDeps, unit: boolean): Promise<Backend> {
  const { vocabulary, contextTokens, model } = deps;
  const context = await openPooled(deps, false);
  const dimension = model.getEmbeddingVectorSize();
  const embedder = new Embedder(context, vocabulary, { contextTokens, dimension }, unit);
  return {
    info: { contextTokens, dimension, threads: { prefill: context.threads, decode: context.threads } },
    handlers: { embed: (input, watch) => embedder.embed(input, watch) },
    canary: async () => void (await embedder.embed({ texts: ['a'], truncate: 'end' }, unwatched())),
    async close() {
      await context.close();
      await model.dispose();
    },
  };
}

async function openReranker(deps: SharedDeps, template: string | undefined, answersChance: boolean): Promise<Backend> {
  const { vocabulary, contextTokens, model } = deps;
  const context = await openPooled(deps, true);
  const reranker = new Reranker({ context, vocabulary, contextTokens, template, answersChance });
  const canary = async () => void (await reranker.rerank({ query: 'a', texts: ['a'], truncate: 'end' }, unwatched()));
  await canary();
  return {
    info: { contextTokens, threads: { prefill: context.threads, decode: context.threads } },
    handlers: { rerank: (input, watch) => reranker.rerank(input, watch) },
    canary,
    async close() {
      await context.close();
      await model.dispose();
    },
  };
}

async function openGenerator(deps: GeneratorDeps): Promise<Backend> {
  const generator = await Generator.open(deps);
  const { prefill, decode } = generator.threads.shapes;
  const { specialTexts, beginText, endText, infillTexts } = deps.vocabulary;
  return {
    info: {
      contextTokens: deps.contextTokens,
      specialTexts,
      ...(beginText === undefined ? {} : { bosText: beginText }),
      ...(endText === undefined ? {} : { eosText: endText }),
      ...(infillTexts === undefined ? {} : { infillTexts }),
      threads: { prefill: prefill.count, decode: decode.count },
    },
    handlers: {
      generate: (input, context) => generator.generate(input, context),
      generateBatch: (input, { signal, progress }) =>
        generator.generateBatch(input, { signal, progress, emit: () => undefined }),
    },
    canary: () => generator.canary(),
    async close() {
      await generator.close();
      await deps.model.dispose();
    },
  };
}
