import { must } from '../../../lib/assert.ts';
import { turn } from '../../../lib/in-slices.ts';
import { batchWindow, planBatch } from './plan-batch.ts';

/** What the queue has to know of an input. */
export interface Sized {
  readonly length: number;
}

export interface QueueContext {
  readonly signal: AbortSignal;
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
 * Inputs of all requests that wait for one model, read in batches of similar length, oldest first. Between two batches
 * the event loop turns: new requests join, and those that nobody waits for leave.
 */
export class BatchQueue<Item extends Sized, Output> {
  readonly #run: (items: readonly Item[]) => Promise<Output[]>;
  readonly #tokensMax: number;
  #waiting: Waiting<Item, Output>[] = [];
  #working = false;

  constructor(tokensMax: number, run: (items: readonly Item[]) => Promise<Output[]>) {
    this.#tokensMax = tokensMax;
    this.#run = run;
  }

  /** Outputs in the order of the items. Rejects with what the run threw, or with the reason of the abort. */
  submit(items: readonly Item[], { signal, progress }: QueueContext): Promise<Output[]> {
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
      for (const [index, item] of items.entries()) this.#waiting.push({ item, index, request });
      if (!this.#working) void this.#work();
    }
    return promise;
  }

  async #work(): Promise<void> {
    this.#working = true;
    await turn();
    while (this.#waiting.length > 0) {
      const chosen = planBatch(
        this.#waiting.slice(0, batchWindow).map(({ item }) => item.length),
        this.#tokensMax,
      );
      await this.#runBatch(this.#take(chosen));
      await turn();
    }
    this.#working = false;
  }

  #take(chosen: readonly number[]): Waiting<Item, Output>[] {
    const taken = new Set(chosen);
    const batch = chosen.map((index) => must(this.#waiting[index], 'a plan is made of what waits'));
    this.#waiting = this.#waiting.filter((_, index) => !taken.has(index));
    return batch;
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
    this.#waiting = this.#waiting.filter((each) => each.request !== request);
    request.reject(reason);
  }
}
