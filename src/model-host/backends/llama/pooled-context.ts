import { systemClock } from '../../../lib/clock.ts';
import { KeyedMutex } from '../../../lib/concurrency/keyed-mutex.ts';
import type { OperationContext } from '../../backend.ts';
import { Lanes } from '../../lanes.ts';
import type { LlamaBinding, NativeContext, NativeModel } from './binding.ts';
import type { Threads } from './threads.ts';

interface PooledDeps {
  readonly binding: LlamaBinding;
  readonly model: NativeModel;
  /** Tokens of one input. */
  readonly contextTokens: number;
  /** The answer is how well a pair fits, not a vector. */
  readonly ranking: boolean;
}

type Watch = Pick<OperationContext<'embed'>, 'signal' | 'priority' | 'progress'>;

/**
 * A context that reads whole inputs and answers one vector for each, pooled as the file says. The binding gives out the
 * vector of one sequence only, so that inputs are read one after another, whoever they come from.
 */
export class PooledContext {
  readonly #context: NativeContext;
  readonly #threads: Threads;
  readonly #tasks = new KeyedMutex();
  readonly #lanes = new Lanes(systemClock);

  private constructor(context: NativeContext, threads: Threads) {
    this.#context = context;
    this.#threads = threads;
  }

  static async open(
    { binding, model, contextTokens, ranking }: PooledDeps,
    probe: (context: NativeContext) => Promise<Threads>,
  ): Promise<PooledContext> {
    const context = new binding.AddonContext(model, {
      contextSize: contextTokens,
      // Only a text that is read in one go can look in both directions.
      batchSize: contextTokens,
      sequences: 1,
      flashAttention: 'auto',
      threads: 1,
      embeddings: true,
      ranking,
    });
    if (!(await context.init())) throw new Error(`no room to read ${contextTokens} tokens at a time`);
    return new PooledContext(context, await probe(context));
  }

  get threads(): number {
    return this.#threads.shapes.prefill.count;
  }

  /** Vectors of inputs, which have a token at least and `contextTokens` at most. Stops between two when aborted. */
  async read(inputs: readonly (readonly number[])[], { signal, priority, progress }: Watch): Promise<Float64Array[]> {
    const vectors: Float64Array[] = [];
    for (const tokens of inputs) {
      signal.throwIfAborted();
      const read = () => this.#tasks.run('read', () => this.#evaluate(tokens));
      vectors.push(await this.#lanes.run({ signal, priority }, read));
      progress();
    }
    return vectors;
  }

  async close(): Promise<void> {
    await this.#context.dispose();
  }

  async #evaluate(tokens: readonly number[]): Promise<Float64Array> {
    this.#context.removeTokenCellsFromSequence(0, 0, -1);
    this.#context.setThreads(this.#threads.for(tokens.length));
    this.#context.initBatch(tokens.length);
    this.#context.addToBatch(0, 0, Uint32Array.from(tokens), Uint32Array.from(tokens.keys()));
    await this.#context.decodeBatch();
    return this.#context.getEmbedding(tokens.length);
  }
}
