import { must } from '../../../../lib/assert.ts';
import { type Clock, systemClock } from '../../../../lib/clock.ts';
import { yieldToEventLoop } from '../../../../lib/concurrency/yield-to-event-loop.ts';
import type { Priority } from '../../../priority.ts';
import { batchWindow, planBatch } from './plan-batch.ts';

/** The facts about an input that the queue needs. */
export interface Sized {
  readonly length: number;
}

export interface QueueContext {
  readonly signal: AbortSignal;
  /** `foreground` unless given. */
  readonly priority?: Priority;
  readonly progress: () => void;
}

interface Waiting<Item, Output> {
  readonly item: Item;
  readonly index: number;
  readonly request: Request<Output>;
}

interface Request<Output> {
  readonly outputs: Output[];
  readonly resolve: (outputs: Output[]) => void;
  readonly reject: (reason: unknown) => void;
  readonly progress: () => void;
  left: number;
  over: boolean;
}

/**
 * How long a batch in the background is to take, in milliseconds: a request that comes while one is read waits for no
 * more. The batch has as many tokens as were read in that time before; runs of few tokens are no slower by the token.
 */
const backgroundRunMs = 50;
const backgroundTokensMin = 64;

/**
 * Inputs of all requests that wait for one model, read in batches of similar length, oldest first. Between two batches
 * the event loop turns: new requests join, and those that nobody waits for leave. Inputs of the background are read in
 * small batches, and only while none of the foreground waits.
 */
export class BatchQueue<Item extends Sized, Output> {
  readonly #run: (items: readonly Item[]) => Promise<Output[]>;
  readonly #tokensMax: number;
  readonly #clock: Clock;
  #backgroundTokens = backgroundTokensMin;
  #waiting: Record<Priority, Waiting<Item, Output>[]> = { foreground: [], background: [] };
  #working = false;

  constructor(tokensMax: number, run: (items: readonly Item[]) => Promise<Output[]>, clock: Clock = systemClock) {
    this.#tokensMax = tokensMax;
    this.#run = run;
    this.#clock = clock;
  }

  /** Outputs in the order of the items. Rejects with what the run threw, or with the reason of the abort. */
  submit(items: readonly Item[], { signal, priority = 'foreground', progress }: QueueContext): Promise<Output[]> {
    const { promise, resolve, reject } = Promise.withResolvers<Output[]>();
    if (signal.aborted) reject(signal.reason);
    else if (items.length === 0) resolve([]);
    else {
      const request: Request<Output> = {
        outputs: new Array<Output>(items.length),
        resolve,
        reject,
        progress,
        left: items.length,
        over: false,
      };
      signal.addEventListener('abort', () => this.#end(request, signal.reason), { once: true });
      for (const [index, item] of items.entries()) this.#waiting[priority].push({ item, index, request });
      if (!this.#working) void this.#work();
    }
    return promise;
  }

  async #work(): Promise<void> {
    this.#working = true;
    await yieldToEventLoop();
    for (;;) {
      const { foreground, background } = this.#waiting;
      if (foreground.length > 0) await this.#runBatch(this.#take('foreground', this.#tokensMax));
      else if (background.length > 0) await this.#runBackground();
      else break;
      await yieldToEventLoop();
    }
    this.#working = false;
  }

  async #runBackground(): Promise<void> {
    const batch = this.#take('background', Math.min(this.#tokensMax, this.#backgroundTokens));
    const startMs = this.#clock.monotonicMs();
    await this.#runBatch(batch);
    const tokens = batch.reduce((sum, { item }) => sum + item.length, 0);
    const inTime = (tokens * backgroundRunMs) / (this.#clock.monotonicMs() - startMs);
    this.#backgroundTokens = Math.max(backgroundTokensMin, inTime);
  }

  #take(lane: Priority, tokensMax: number): Waiting<Item, Output>[] {
    const waiting = this.#waiting[lane];
    const lengths = waiting.slice(0, batchWindow).map(({ item }) => item.length);
    const taken = new Set(planBatch(lengths, tokensMax));
    this.#waiting[lane] = waiting.filter((_, index) => !taken.has(index));
    return [...taken].map((index) => must(waiting[index], 'a plan is made of what waits'));
  }

  async #runBatch(batch: readonly Waiting<Item, Output>[]): Promise<void> {
    try {
      const outputs = await this.#run(batch.map(({ item }) => item));
      for (const [at, { index, request }] of batch.entries()) {
        request.outputs[index] = must(outputs[at], 'an output for every item');
        request.left -= 1;
        request.progress();
        if (request.left > 0 || request.over) continue;
        request.over = true;
        request.resolve(request.outputs);
      }
    } catch (error) {
      for (const { request } of batch) this.#end(request, error);
    }
  }

  #end(request: Request<Output>, reason: unknown): void {
    if (request.over) return;
    request.over = true;
    const { foreground, background } = this.#waiting;
    const isOther = (each: Waiting<Item, Output>) => each.request !== request;
    this.#waiting = { foreground: foreground.filter(isOther), background: background.filter(isOther) };
    request.reject(reason);
  }
}
