import { getLlama, LlamaChatSession, type LlamaContext, LlamaLogLevel } from 'node-llama-cpp';
import { installedGpus } from '../../src/model-host/available-backends.ts';
import {
  cpuMs,
  type GenerateAnswer,
  type GenerateCommand,
  type LoadAnswer,
  type LoadCommand,
  serveGenerationEngine,
} from '../engines/generation-engine-commands.ts';

/** The chat session of node-llama-cpp as its guide shows it. */
let context: LlamaContext | undefined;

async function load({ path, threads, contextTokens }: LoadCommand): Promise<LoadAnswer> {
  const llama = await getLlama({ build: 'never', gpu: installedGpus()[0] ?? false, logLevel: LlamaLogLevel.error });
  const model = await llama.loadModel({ modelPath: path });
  context = await model.createContext({ contextSize: contextTokens, threads });
  return { threads, batchThreads: threads };
}

async function generate({ prompts, tokens }: GenerateCommand): Promise<GenerateAnswer> {
  if (context === undefined) throw new Error('nothing is loaded');
  const sequence = context.getSequence();
  const session = new LlamaChatSession({ contextSequence: sequence });
  const startMs = performance.now();
  let firstMs = 0;
  let firstCpuMs = 0;
  let made = 0;
  await session.prompt(prompts[0] ?? '', {
    maxTokens: tokens,
    onToken: (chunk) => {
      if (made === 0) [firstMs, firstCpuMs] = [performance.now(), cpuMs()];
      made += chunk.length;
    },
  });
  const endMs = performance.now();
  const decodeCpuMs = cpuMs() - firstCpuMs;
  session.dispose();
  await sequence.dispose();
  const decodeMs = endMs - firstMs;
  return {
    tokens: made,
    decodeMs,
    decodeCpuMs,
    prefillMs: firstMs - startMs,
    wallMs: endMs - startMs,
    cachedTokens: 0,
  };
}

await serveGenerationEngine({ load, generate });
