import { installedGpus } from '../../src/model-host/available-backends.ts';
import {
  type LlamaBinding,
  type NativeContext,
  type NativeModel,
  type NativeSampler,
  openBinding,
  openModel,
} from '../../src/model-host/backends/llama/binding.ts';
import { readGgufHeader } from '../../src/models/headers/gguf-header.ts';
import {
  cpuMs,
  type GenerateAnswer,
  type GenerateCommand,
  type LoadAnswer,
  type LoadCommand,
  serveGenerationEngine,
} from '../engines/generation-engine-commands.ts';

interface Loaded {
  readonly binding: LlamaBinding;
  readonly model: NativeModel;
  readonly context: NativeContext;
  readonly threads: LoadAnswer;
}

/** llama.cpp through the same binding with nothing around it: decode, take the likeliest token, decode. */
let loaded: Loaded | undefined;

async function load({ path, threads, batchThreads = threads, sequences, contextTokens }: LoadCommand) {
  const opened = await openBinding(installedGpus(), () => undefined);
  const { binding } = opened;
  const model = await openModel(opened, path, readGgufHeader(path));
  const context = new binding.AddonContext(model, {
    contextSize: contextTokens * sequences,
    batchSize: 512,
    sequences,
    flashAttention: 'auto',
    threads,
  });
  if (!(await context.init())) throw new Error('the context was refused');
  loaded = { binding, model, context, threads: { threads, batchThreads } };
  return loaded.threads;
}

async function generate({ prompts, tokens }: GenerateCommand): Promise<GenerateAnswer> {
  if (loaded === undefined) throw new Error('nothing is loaded');
  const outputs = prompts.map((prompt, sequence) => new Output(loaded as Loaded, sequence, prompt));
  const startMs = performance.now();
  for (const output of outputs) await output.read();
  const readMs = performance.now();
  const readCpuMs = cpuMs();
  for (let made = 1; made < tokens; made += 1) await evaluate(loaded, outputs);
  const endMs = performance.now();
  const decodeCpuMs = cpuMs() - readCpuMs;
  for (const output of outputs) output.sampler.dispose();
  return {
    tokens: tokens * outputs.length,
    decodeCpuMs,
    decodeMs: endMs - readMs,
    prefillMs: readMs - startMs,
    wallMs: endMs - startMs,
    cachedTokens: 0,
  };
}

class Output {
  readonly sampler: NativeSampler;
  readonly #loaded: Loaded;
  readonly #sequence: number;
  readonly #prompt: Uint32Array;
  #next = new Uint32Array(0);
  #position = 0;

  constructor(loaded: Loaded, sequence: number, prompt: string) {
    this.#loaded = loaded;
    this.#sequence = sequence;
    this.#prompt = loaded.model.tokenize(prompt, false);
    this.sampler = new loaded.binding.AddonSampler(loaded.model);
    this.sampler.applyConfig({ temperature: 0 });
    loaded.context.removeTokenCellsFromSequence(sequence, 0, -1);
  }

  get pending(): number {
    return this.#next.length;
  }

  async read(): Promise<void> {
    for (let at = 0; at < this.#prompt.length; at += 512) {
      this.#next = this.#prompt.slice(at, at + 512);
      await evaluate(this.#loaded, [this]);
    }
  }

  add(): number {
    const last = Uint32Array.of(this.#next.length - 1);
    const [place = 0] = this.#loaded.context.addToBatch(this.#sequence, this.#position, this.#next, last);
    this.#position += this.#next.length;
    return place;
  }

  async take(place: number): Promise<void> {
    this.#next = Uint32Array.of(await this.#loaded.context.sampleToken(place, this.sampler));
  }
}

async function evaluate({ context, threads }: Loaded, outputs: readonly Output[]): Promise<void> {
  const tokens = outputs.reduce((sum, { pending }) => sum + pending, 0);
  context.setThreads(tokens === 1 ? threads.threads : threads.batchThreads);
  context.initBatch(tokens);
  const places = outputs.map((output) => output.add());
  await context.decodeBatch();
  await Promise.all(outputs.map((output, at) => output.take(places[at] ?? 0)));
}

await serveGenerationEngine({ load, generate });
