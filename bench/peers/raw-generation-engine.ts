import {
  type LlamaBinding,
  type NativeContext,
  type NativeModel,
  openBinding,
  openModel,
} from '../../src/inference/host/backends/llama/binding.ts';
import { readGgufHeader } from '../../src/inference/models/gguf-header.ts';
import {
  cpuMs,
  type GenerateAnswer,
  type GenerateCommand,
  type LoadCommand,
  serveGenerationEngine,
} from './generation-engine.ts';

/** llama.cpp through the same binding with nothing around it: decode, take the likeliest token, decode. */
let loaded: { binding: LlamaBinding; model: NativeModel; context: NativeContext } | undefined;

async function load({ path, threads, contextTokens }: LoadCommand): Promise<{ threads: number }> {
  const { binding } = await openBinding(() => undefined);
  const { model } = await openModel({ binding, gpuLayers: 0 }, path, readGgufHeader(path));
  const context = new binding.AddonContext(model, {
    contextSize: contextTokens,
    batchSize: 512,
    sequences: 1,
    flashAttention: 'auto',
    threads,
  });
  if (!(await context.init())) throw new Error('the context was refused');
  loaded = { binding, model, context };
  return { threads };
}

async function generate({ prompts, tokens }: GenerateCommand): Promise<GenerateAnswer> {
  if (loaded === undefined) throw new Error('nothing is loaded');
  const { binding, model, context } = loaded;
  const sampler = new binding.AddonSampler(model);
  sampler.applyConfig({ temperature: 0 });
  context.removeTokenCellsFromSequence(0, 0, -1);
  const prompt = model.tokenize(prompts[0] ?? '', false);
  const startMs = performance.now();
  let position = 0;
  const step = async (batch: Uint32Array): Promise<number> => {
    context.initBatch(batch.length);
    const [place] = context.addToBatch(0, position, batch, Uint32Array.of(batch.length - 1));
    await context.decodeBatch();
    position += batch.length;
    return await context.sampleToken(place ?? 0, sampler);
  };
  let token = 0;
  for (let at = 0; at < prompt.length; at += 512) token = await step(prompt.subarray(at, at + 512));
  const readMs = performance.now();
  const readCpuMs = cpuMs();
  for (let made = 1; made < tokens; made += 1) token = await step(Uint32Array.of(token));
  const endMs = performance.now();
  sampler.dispose();
  const decodeCpuMs = cpuMs() - readCpuMs;
  return {
    tokens,
    decodeCpuMs,
    decodeMs: endMs - readMs,
    prefillMs: readMs - startMs,
    wallMs: endMs - startMs,
    cachedTokens: 0,
  };
}

await serveGenerationEngine({ load, generate });
