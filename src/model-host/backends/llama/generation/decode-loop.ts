import type { Clock } from '../../../../lib/clock.ts';
import { ServiceError } from '../../../../protocol/service-error.ts';
import type { NativeContext } from '../binding.ts';
import { draftTokensMax } from '../open-context.ts';
import type { Threads } from '../threads.ts';
import type { Generation } from './generation.ts';
import type { SequenceSlot, SequenceSlots } from './sequence-slots.ts';

/** Items that belong to one request; counts how often some of them were started together. */
export interface GenerationGroup {
  starts: number;
}

interface DecodeLoopDeps {
  readonly context: NativeContext;
  readonly slots: SequenceSlots;
  readonly threads: Threads;
  readonly clock: Clock;
  /** Tokens of prompts that are read in one step. */
  readonly sliceTokens: number;
  /** Tokens that a sequence has room for, where a generation may have more. */
  readonly room?: number | undefined;
}

interface Waiting {
  readonly generation: Generation;
  readonly group: GenerationGroup | undefined;
}

/**
 * Runs the generations of one context side by side: each step evaluates the next token of every output, and a slice of
 * the prompts that are still being read, as one native batch. Requests queue for a free sequence in the order of their arrival.
 */
export class DecodeLoop {
  readonly #context: NativeContext;
  readonly #slots: SequenceSlots;
  readonly #threads: Threads;
  readonly #clock: Clock;
  readonly #sliceTokens: number;
  readonly #room: number;
  readonly #waiting: Waiting[] = [];
  #active: Generation[] = [];
  #isRunning = false;

  constructor({ context, slots, threads, clock, sliceTokens, room = Number.POSITIVE_INFINITY }: DecodeLoopDeps) {
    this.#context = context;
    this.#slots = slots;
    this.#threads = threads;
    this.#clock = clock;
    this.#sliceTokens = sliceTokens;
    this.#room = room;
  }

  /** Evaluates one token, unless generations are running or every sequence holds a state that somebody may want. */
  async evaluateNothing(): Promise<void> {
    const slot = this.#isRunning ? undefined : this.#slots.takeEmpty();
    if (slot === undefined) return;
    this.#isRunning = true;
    try {
      this.#context.initBatch(1);
      this.#context.addToBatch(slot.id, 0, Uint32Array.of(0), Uint32Array.of(0));
      await this.#context.decodeBatch();
    } finally {
      slot.tokens.push(0);
      this.#slots.release(slot, false);
      void this.#run();
    }
  }

  /** The generation settles by itself: with its result, its error, or the reason of its abort. */
  start(generation: Generation, group?: GenerationGroup): void {
    const waiting = { generation, group };
    this.#waiting.push(waiting);
    generation.onAbort(() => {
      const at = this.#waiting.indexOf(waiting);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      generation.abandon();
    });
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    // Requests of one message start together.
    await Promise.resolve();
    for (;;) {
      this.#dropAborted();
      await this.#admit();
      // Requests that arrived while others were admitted have only been queued.
      if (this.#active.length > 0) await this.#step();
      else if (this.#waiting.length === 0) break;
    }
    this.#isRunning = false;
  }

  #dropAborted(): void {
    for (const generation of this.#active) {
      if (generation.aborted) this.#end(generation, () => generation.abandon());
    }
  }

  async #admit(): Promise<void> {
    const groups = new Set<GenerationGroup>();
    while (this.#waiting.length > 0 && this.#slots.anyFree) {
      const { generation, group } = this.#waiting.shift() as Waiting;
      if ((await this.#begin(generation)) && group !== undefined) groups.add(group);
    }
    for (const group of groups) group.starts += 1;
  }

  async #begin(generation: Generation): Promise<boolean> {
    let slot: SequenceSlot | undefined;
    try {
      slot = await this.#slots.take(generation.prompt, generation.cache);
      generation.begin(slot);
      this.#active.push(generation);
      return true;
    } catch (error) {
      if (slot !== undefined) this.#slots.release(slot, false);
      generation.fail(evaluationFailed(error));
      return false;
    }
  }

  async #step(): Promise<void> {
    for (const generation of this.#active) await generation.prepare();
    const parts = this.#parts();
    const total = parts.reduce((sum, { tokens }) => sum + tokens.length, 0);
    try {
      this.#context.setThreads(this.#threads.for(total));
      this.#context.initBatch(total);
      const places = parts.map(({ generation, tokens }) => this.#add(generation, tokens));
      const startMs = this.#clock.monotonicMs();
      await this.#context.decodeBatch();
      this.#threads.took(total, this.#clock.monotonicMs() - startMs);
      for (const { generation, tokens } of parts) generation.slot.tokens.push(...tokens);
      await Promise.all(parts.map(({ generation }, at) => this.#take(generation, places[at] ?? new Uint32Array(0))));
    } catch (error) {
      // The state of every sequence in the batch is unknown now.
      for (const { generation } of parts) {
        this.#end(generation, () => generation.fail(evaluationFailed(error)), false);
      }
    }
  }

  /** The next token of each output, and a slice of the prompts, shared so that a short one does not wait for a long one. */
  #parts(): { generation: Generation; tokens: readonly number[] }[] {
    const reading = this.#active.filter((generation) => generation.reading);
    reading.sort((a, b) => a.unread - b.unread);
    const slices = new Map<Generation, number>();
    let budget = this.#sliceTokens;
    for (const [at, generation] of reading.entries()) {
      const share = Math.min(generation.unread, Math.floor(budget / (reading.length - at)));
      slices.set(generation, share);
      budget -= share;
    }
    // llama.cpp evaluates neighbouring sequences in one go, and only in their order.
    const ordered = this.#active.toSorted((a, b) => a.slot.id - b.slot.id);
    return ordered.map((generation) => ({ generation, tokens: generation.next(slices.get(generation) ?? 0) }));
  }

  #add(generation: Generation, tokens: readonly number[]): Uint32Array {
    const { slot } = generation;
    return this.#context.addToBatch(
      slot.id,
      slot.tokens.length,
      Uint32Array.from(tokens),
      Uint32Array.from(generation.wanted(tokens.length)),
    );
  }

  async #take(generation: Generation, places: Uint32Array): Promise<void> {
    try {
      const { done, keptTokens } = await generation.take(this.#context, places);
      this.#slots.truncate(generation.slot, keptTokens);
      if (done) this.#end(generation, () => generation.settle());
      else if (!generation.reading && generation.slot.tokens.length + 1 + draftTokensMax >= this.#room) {
        // Its tokens are read again where there is more room.
        this.#end(generation, () => generation.outgrow(), false);
      }
    } catch (error) {
      this.#end(generation, () => generation.fail(evaluationFailed(error)));
    }
  }

  /** `tell` still sees the tokens of the sequence. The caller learns of the end in a later turn, when the sequence is free. */
  #end(generation: Generation, tell: () => void, keep = true): void {
    const { slot, cache } = generation;
    this.#active = this.#active.filter((each) => each !== generation);
    tell();
    this.#slots.release(slot, keep && cache !== undefined);
  }
}

function evaluationFailed(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  return new ServiceError('inference_failed', 'the model failed on this input; the log has the details', {
    cause: error,
  });
}
