import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Backend } from '../../src/model-host/backend.ts';
import { load } from '../../src/model-host/backends/llama/load.ts';
import type { GenerateInput } from '../../src/model-host/operations/generate.ts';
import { generateInput } from '../../test/support/inference/generate-input.ts';
import {
  cpuMs,
  type GenerateAnswer,
  type GenerateCommand,
  type LoadAnswer,
  type LoadCommand,
  serveGenerationEngine,
} from '../engines/generation-engine-commands.ts';

/** The work of a model's child process, without the messages of its parent. */
let backend: Backend | undefined;

async function loadModel({ path, threads, sequences, contextTokens }: LoadCommand): Promise<LoadAnswer> {
  const { size } = statSync(path);
  const manifest = { capabilities: [], inputs: ['text' as const], variants: {}, context_length: contextTokens };
  backend = await load(
    {
      backend: 'llama',
      kind: 'generators',
      name: basename(path),
      bytes: size,
      model: {
        kind: 'generators',
        name: basename(path),
        directory: dirname(path),
        backend: 'native',
        weights: basename(path),
        variant: 'full',
        bytes: size,
        parameters: 0,
        created: 0,
        manifest,
        contextSource: 'manifest',
      },
      settings: { threads, contextTokensMax: contextTokens, parallelSequences: sequences },
    },
    { reserve: () => Promise.resolve(true), release: () => undefined },
  );
  const { decode = 0, prefill = 0 } = backend.info.threads ?? {};
  return { threads: decode, batchThreads: prefill };
}

async function generate({ prompts, tokens, cache }: GenerateCommand): Promise<GenerateAnswer> {
  const handler = backend?.handlers.generate;
  if (handler === undefined) throw new Error('nothing is loaded');
  let firstCpuMs = 0;
  const startCpuMs = cpuMs();
  const emit = () => {
    if (firstCpuMs === 0) firstCpuMs = cpuMs();
  };
  const context = { signal: new AbortController().signal, emit, progress: () => undefined };
  const startMs = performance.now();
  const results = await Promise.all(prompts.map((prompt) => handler(inputOf(prompt, tokens, cache), context)));
  return {
    tokens: results.reduce((sum, { completionTokens }) => sum + completionTokens, 0),
    decodeMs: Math.max(...results.map(({ decodeMs }) => decodeMs)),
    decodeCpuMs: cpuMs() - firstCpuMs,
    prefillMs: Math.max(...results.map(({ prefillMs }) => prefillMs)),
    prefillCpuMs: firstCpuMs - startCpuMs,
    promptTokens: results.reduce((sum, { promptTokens }) => sum + promptTokens, 0),
    wallMs: performance.now() - startMs,
    cachedTokens: Math.max(...results.map(({ cachedTokens }) => cachedTokens)),
  };
}

/** The likeliest tokens after a text, up to the number asked for. */
function inputOf(text: string, tokensMax: number, cache: boolean): GenerateInput {
  const promptCache = cache ? { key: undefined } : undefined;
  return generateInput('', {
    prompt: [{ text, markup: false }],
    tokensMax,
    ignoreEos: true,
    promptCache,
    stream: true,
  });
}

await serveGenerationEngine({ load: loadModel, generate });
