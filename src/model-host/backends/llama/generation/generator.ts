import { systemClock } from '../../../../lib/clock.ts';
import { ServiceError } from '../../../../protocol/service-error.ts';
import type { Device } from '../../../available-backends.ts';
import type { OperationContext } from '../../../backend.ts';
import type { HostMemory } from '../../../child/host-memory.ts';
import type { HostSettings } from '../../../model-spec.ts';
import type {
  GenerateBatchInput,
  GenerateBatchResult,
  GenerateInput,
  GenerateResult,
  Sampling,
} from '../../../operations/generate.ts';
import { stateLengths } from '../../../state-lengths.ts';
import { contextOverflow } from '../../context-overflow.ts';
import type { LlamaBinding, NativeContext, NativeModel } from '../binding.ts';
import { LazyPool, type Lease } from '../lazy-pool.ts';
import { openContext } from '../open-context.ts';
import { type OpenState, States } from '../states.ts';
import { threadsFor } from '../thread-probe.ts';
import type { Threads } from '../threads.ts';
import type { Vocabulary } from '../vocabulary.ts';
import { type Constrainer, Grammars } from './constrainer.ts';
import type { GenerationGroup } from './decode-loop.ts';
import { Generation } from './generation.ts';
import { Speculator } from './speculator.ts';
import { TokenSampler } from './token-sampler.ts';

export interface GeneratorDeps {
  readonly name: string;
  readonly binding: LlamaBinding;
  readonly model: NativeModel;
  readonly vocabulary: Vocabulary;
  /** Tokens that one generation may span. */
  readonly contextTokens: number;
  readonly settings: HostSettings;
  /** Bytes of the state of one token in sixteen bits; 0 where the file does not say. */
  readonly tokenBytes: number;
  readonly memory: HostMemory;
  readonly device: Device;
  /** Whether the model can take back tokens that it has read. */
  readonly canRewind: boolean;
}

type Context = Pick<OperationContext<'generate'>, 'signal' | 'emit' | 'progress'>;

/** A state is opened for the prompt and this much of the answer; most answers are no longer. */
const expectedTokens = 256;

/** Generates text with one loaded model. */
export class Generator {
  readonly threads: Threads;
  readonly #deps: GeneratorDeps;
  readonly #pool: LazyPool;
  readonly #states: States;
  readonly #speculator: Speculator;
  readonly #grammars: Grammars;

  private constructor(deps: GeneratorDeps, first: NativeContext, threads: Threads) {
    const sequences = deps.settings.parallelSequences;
    this.#deps = deps;
    this.threads = threads;
    this.#pool = new LazyPool(deps.memory, systemClock);
    this.#states = new States({ ...deps, sequences, pool: this.#pool, threads }, first);
    this.#speculator = new Speculator({ ...deps, sequences, pool: this.#pool });
    this.#grammars = new Grammars(deps.vocabulary);
  }

  static async open(deps: GeneratorDeps): Promise<Generator> {
    const { settings, contextTokens } = deps;
    const sequences = settings.parallelSequences;
    const [shortest] = stateLengths(contextTokens);
    const native = await openContext({ ...deps, contextTokens: shortest, sequences }, 'f16');
    const threads = await threadsFor({ context: native, device: deps.device, set: settings.threads, sequences });
    return new Generator(deps, native, threads);
  }

  async generate(input: GenerateInput, context: Context, group?: GenerationGroup): Promise<GenerateResult> {
    const { vocabulary, contextTokens } = this.#deps;
    const prompt = vocabulary.tokenize(input.prompt);
    if (prompt.length === 0) throw new ServiceError('invalid_request', 'the prompt is empty');
    if (prompt.length >= contextTokens) {
      throw new ServiceError(
        'context_length_exceeded',
        contextOverflow(
          contextTokens,
          `the prompt has ${prompt.length}, and the answer needs room too; shorten the messages`,
        ),
      );
    }
    checkBiases(input.sampling, vocabulary);
    const constrainer = input.constraint && this.#grammars.open(input.constraint);
    let lease: Lease<OpenState> | undefined;
    let generation: Generation | undefined;
    try {
      const { promptCache: cache, speculation: wanted, cacheType = 'f16' } = input;
      const tokens = prompt.length + Math.min(input.tokensMax, expectedTokens);
      lease = await this.#states.lease(cacheType, tokens);
      const request = { target: lease.value.native, threads: this.threads, tokens, cache, signal: context.signal };
      generation = new Generation({
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
      for (;;) {
        const { outcome } = generation;
        lease.value.loop.start(generation, group);
        const result = await outcome;
        if (result !== 'outgrown') return result;
        lease.release();
        lease = await this.#states.lease(cacheType, generation.prompt.length + expectedTokens);
      }
    } finally {
      generation?.close();
      lease?.release();
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
    await this.#states.evaluateNothing();
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  #sampler(input: GenerateInput, prompt: readonly number[], constrainer: Constrainer | undefined): TokenSampler {
    const { binding, model, vocabulary, contextTokens } = this.#deps;
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
}

/** Numbers of tokens are those of another model more often than not where one does not exist. */
function checkBiases({ logitBias }: Sampling, { size }: Vocabulary): void {
  const foreign = logitBias.find(([token]) => token >= size);
  if (foreign === undefined) return;
  throw new ServiceError(
    'invalid_request',
    `logit_bias: there is no token ${foreign[0]}; this model has ${size} tokens`,
  );
}
