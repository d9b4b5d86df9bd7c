import { systemClock } from '../../../lib/clock.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { CacheType } from '../../operations/generate.ts';
import { stateLengths } from '../../state-lengths.ts';
import type { NativeContext } from './binding.ts';
import { DecodeLoop } from './generation/decode-loop.ts';
import { SequenceSlots } from './generation/sequence-slots.ts';
import type { LazyPool, Lease, Opening } from './lazy-pool.ts';
import { type ContextDeps, NoRoomError, openContext, sliceTokensOn } from './open-context.ts';
import type { Threads } from './threads.ts';

/** Room for the keys and values of some sequences, and the loop that decodes in it. */
export interface OpenState {
  readonly native: NativeContext;
  readonly loop: DecodeLoop;
}

interface StatesDeps extends Omit<ContextDeps, 'contextTokens'> {
  /** Tokens that one generation may span. */
  readonly contextTokens: number;
  /** Bytes of a token in sixteen bits; 0 where the file does not say. */
  readonly tokenBytes: number;
  readonly pool: LazyPool;
  readonly threads: Threads;
}

/** Memory of a state, beside one of sixteen bits. */
const sizes: Readonly<Record<CacheType, number>> = { f32: 2, f16: 1, int8: 17 / 32, int4: 9 / 32 };

/** The states of one model, each opened when it is first asked for. */
export class States {
  readonly #deps: StatesDeps;

  /** `first` is open already: it has the first of all lengths, in sixteen bits. */
  constructor(deps: StatesDeps, first: NativeContext) {
    this.#deps = deps;
    const [tokens] = stateLengths(deps.contextTokens);
    deps.pool.keep(this.#opening('f16', tokens, deps.sequences), this.#start(first, tokens));
  }

  /**
   * Leases a state for a generation of `tokens` tokens. Throws `memory_budget_exceeded` where there is no room for it, and
   * `model_not_supported` where the model cannot keep its state like that.
   */
  async lease(type: CacheType, tokens: number): Promise<Lease<OpenState>> {
    const { contextTokens, pool, name } = this.#deps;
    const lengths = stateLengths(contextTokens).filter((length) => length >= Math.min(tokens, contextTokens));
    const [shortest = contextTokens] = lengths;
    const open = this.#open(type, lengths);
    const wanted = open === undefined ? this.#openings(type, shortest) : [open];
    for (const opening of wanted) {
      const lease = await pool.lease(opening).catch((error: unknown) => {
        // A GPU has a limit of its own.
        if (!(error instanceof NoRoomError)) throw error;
      });
      if (lease !== undefined) return lease;
    }
    const bytes = Math.ceil(wanted.at(-1)?.bytes ?? 0);
    throw new ServiceError(
      'memory_budget_exceeded',
      `the model "${name}" needs ${bytes} more bytes for ${shortest} tokens in ${type}; inference.memory_limit or its GPU leaves no room`,
    );
  }

  /** Shows that the native code works, where that costs no request a state. */
  async evaluateNothing(): Promise<void> {
    const lease = (await this.#deps.pool.borrow()) as Lease<OpenState> | undefined;
    try {
      await lease?.value.loop.evaluateNothing();
    } finally {
      lease?.release();
    }
  }

  /**
   * One that is open saves the time and the memory of another; the longest one keeps the most prompts. One with fewer
   * sequences was opened while memory was short, and serves no more requests at once than it has.
   */
  #open(type: CacheType, lengths: readonly number[]): Opening<OpenState> | undefined {
    const { pool, sequences } = this.#deps;
    for (const count of this.#counts()) {
      const openings = lengths.map((length) => this.#opening(type, length, count));
      const users = ({ key }: Opening<OpenState>) => pool.usersOf(key) ?? Number.POSITIVE_INFINITY;
      const found = openings.findLast((each) => users(each) < (count === sequences ? Number.POSITIVE_INFINITY : count));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #openings(type: CacheType, tokens: number): Opening<OpenState>[] {
    return this.#counts().map((count) => this.#opening(type, tokens, count));
  }

  /** All sequences, and fewer for where memory is short. */
  #counts(): number[] {
    const counts: number[] = [];
    for (let count = this.#deps.sequences; count >= 1; count = Math.floor(count / 2)) counts.push(count);
    return counts;
  }

  #opening(type: CacheType, tokens: number, sequences: number): Opening<OpenState> {
    return {
      key: `${type} ${tokens}x${sequences}`,
      bytes: this.#deps.tokenBytes * sizes[type] * tokens * sequences,
      lastStays: true,
      open: async () => {
        const native = await openContext({ ...this.#deps, contextTokens: tokens, sequences }, type);
        return this.#start(native, tokens, sequences);
      },
      close: async ({ native }) => await native.dispose(),
    };
  }

  #start(native: NativeContext, tokens: number, sequences = this.#deps.sequences): OpenState {
    const { threads, contextTokens, device } = this.#deps;
    const slots = new SequenceSlots(native, sequences);
    const room = tokens < contextTokens ? tokens : undefined;
    const sliceTokens = sliceTokensOn(device);
    return { native, loop: new DecodeLoop({ context: native, slots, threads, clock: systemClock, sliceTokens, room }) };
  }
}
