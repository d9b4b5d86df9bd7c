import { systemClock } from '../../../lib/clock.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { OperationContext } from '../../backend.ts';
import type { HostSettings } from '../../model-spec.ts';
import type {
  CacheType,
  GenerateBatchInput,
  GenerateBatchResult,
  GenerateInput,
  GenerateResult,
} from '../../operations/generate.ts';
import type { LlamaBinding, NativeContext, NativeModel } from './binding.ts';
import { type Constrainer, Grammars } from './constrainer.ts';
import { DecodeLoop, type GenerationGroup } from './decode-loop.ts';
import { Generation } from './generation.ts';
import { openContext } from './open-context.ts';
import { SequenceSlots } from './sequence-slots.ts';
import { Speculator } from './speculator.ts';
import { threadsFor } from './thread-probe.ts';
import type { Threads } from './threads.ts';
import { TokenSampler } from './token-sampler.ts';
import type { Vocabulary } from './vocabulary.ts';

export interface GeneratorParts {
  readonly name: string;
  readonly binding: LlamaBinding;
  readonly model: NativeModel;
  readonly vocabulary: Vocabulary;
  /** Tokens that one generation may span. */
  readonly contextTokens: number;
  readonly settings: HostSettings;
  readonly gpuLayers: number;
  /** Whether the model can take back tokens that it has read. */
  readonly takesBack: boolean;
}

type Context = Pick<OperationContext<'generate'>, 'signal' | 'emit' | 'progress'>;

interface OpenContext {
  readonly native: NativeContext;
  readonly loop: DecodeLoop;
}

/** Generates text with one loaded model. Each key/value precision has a context of its own, made when first asked for. */
export class Generator {
  readonly threads: Threads;
  readonly #parts: GeneratorParts;
  readonly #speculator: Speculator;
  readonly #grammars: Grammars;
  readonly #contexts = new Map<CacheType, Promise<OpenContext>>();

  private constructor(parts: GeneratorParts, native: NativeContext, threads: Threads) {
    this.#parts = parts;
    this.threads = threads;
    this.#speculator = new Speculator({ ...parts, sequences: parts.settings.parallelSequences });
    this.#grammars = new Grammars(parts.vocabulary, systemClock);
    this.#contexts.set('f16', Promise.resolve(this.#start(native)));
  }

  static async open(parts: GeneratorParts): Promise<Generator> {
    const { settings } = parts;
    const native = await openContext({ ...parts, sequences: settings.parallelSequences }, 'f16');
    const threads = await threadsFor(native, settings.threads, settings.parallelSequences);
    return new Generator(parts, native, threads);
  }

  async generate(input: GenerateInput, context: Context, group?: GenerationGroup): Promise<GenerateResult> {
    const { vocabulary, contextTokens, name } = this.#parts;
    const prompt = vocabulary.tokenize(input.prompt);
    if (prompt.length === 0) throw new ServiceError('invalid_request', 'the prompt is empty');
    if (prompt.length >= contextTokens) {
      throw new ServiceError(
        'context_length_exceeded',
        `the prompt has ${prompt.length} tokens; the model "${name}" takes ${contextTokens} with its answer; shorten it`,
      );
    }
    const constrainer = input.constraint && this.#grammars.open(input.constraint);
    try {
      const { loop, native } = await this.#context(input.cacheType ?? 'f16');
      const { promptCache: cache, speculation: wanted } = input;
      const request = { target: native, threads: this.threads, cache, signal: context.signal };
      const generation = new Generation({
        input,
        prompt,
        vocabulary,
        contextTokens,
        context,
        constrainer,
        speculation: wanted && (await this.#speculator.begin(wanted, request)),
        openSampler: () => this.#sampler(input, prompt, constrainer),
        clock: systemClock,
      });
      loop.start(generation, group);
      return await generation.result;
    } finally {
      constrainer?.close();
    }
  }

  async generateBatch({ items }: GenerateBatchInput, context: Context): Promise<GenerateBatchResult> {
    const group = { starts: 0 };
    const { signal, progress } = context;
    const results = await Promise.all(
      items.map(async (item) => {
        try {
          const input = { ...item, stream: false };
          return { result: await this.generate(input, { signal, progress, emit: () => undefined }, group) };
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          return { error: { code: error.code, message: error.message } };
        }
      }),
    );
    return { items: results, nativeBatches: group.starts };
  }

  /** Evaluates one token where that costs nobody the state of a prompt. */
  async canary(): Promise<void> {
    await (await this.#context('f16')).loop.evaluateNothing();
  }

  async close(): Promise<void> {
    await this.#speculator.close();
    for (const opened of this.#contexts.values()) await opened.then(({ native }) => native.dispose());
  }

  #sampler(input: GenerateInput, prompt: readonly number[], constrainer: Constrainer | undefined): TokenSampler {
    const { binding, model, vocabulary, contextTokens } = this.#parts;
    const sampler = new TokenSampler({
      binding,
      model,
      vocabulary,
      sampling: input.sampling,
      prompt,
      historyTokens: contextTokens,
      // A grammar that is complete can only end.
      banned: input.ignoreEos && input.constraint === undefined ? vocabulary.ends : [],
      topLogprobs: input.topLogprobs,
    });
    const grammar = constrainer?.start();
    if (grammar !== undefined) sampler.follow(grammar);
    return sampler;
  }

  #context(type: CacheType): Promise<OpenContext> {
    const known = this.#contexts.get(type);
    if (known !== undefined) return known;
    const sequences = this.#parts.settings.parallelSequences;
    const opened = openContext({ ...this.#parts, sequences }, type).then((native) => this.#start(native));
    this.#contexts.set(type, opened);
    opened.catch(() => this.#contexts.delete(type));
    return opened;
  }

  #start(native: NativeContext): OpenContext {
    const slots = new SequenceSlots(native, this.#parts.settings.parallelSequences);
    return { native, loop: new DecodeLoop(native, slots, this.threads, systemClock) };
  }
}
