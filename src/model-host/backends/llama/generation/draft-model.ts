import { join } from 'node:path';
import { KeyedMutex } from '../../../../lib/concurrency/keyed-mutex.ts';
import { readGgufHeader } from '../../../../models/headers/gguf-header.ts';
import type { InstalledModel } from '../../../../models/installed-model.ts';
import type { Device } from '../../../available-backends.ts';
import { type LlamaBinding, type NativeContext, type NativeModel, type NativeSampler, openModel } from '../binding.ts';
import { openContext, sliceTokensOn } from '../open-context.ts';
import type { Threads } from '../threads.ts';
import type { Drafter } from './drafter.ts';
import { type PromptCache, type SequenceSlot, SequenceSlots } from './sequence-slots.ts';

interface DraftModelDeps {
  readonly binding: LlamaBinding;
  readonly installed: InstalledModel;
  readonly device: Device;
  /** Of the model that checks the drafts; its vocabulary has to be the same. */
  readonly target: NativeContext;
  readonly sequences: number;
  readonly contextTokens: number;
  readonly threads: Threads;
}

/** A small model whose likeliest tokens are the guesses for a large one. */
export class DraftModel {
  readonly #contextTokens: number;
  readonly #sliceTokens: number;
  readonly #model: NativeModel;
  readonly #context: NativeContext;
  readonly #sampler: NativeSampler;
  readonly #slots: SequenceSlots;
  readonly #threads: Threads;
  /** One batch at a time: outputs of several contexts may draft with one model. */
  readonly #tasks = new KeyedMutex();

  private constructor(deps: DraftModelDeps, model: NativeModel, context: NativeContext) {
    this.#contextTokens = deps.contextTokens;
    this.#sliceTokens = sliceTokensOn(deps.device);
    this.#model = model;
    this.#context = context;
    this.#threads = deps.threads;
    this.#slots = new SequenceSlots(context, deps.sequences);
    this.#sampler = new deps.binding.AddonSampler(model);
    this.#sampler.applyConfig({ temperature: 0 });
  }

  /** Throws with the reason where the model cannot draft for the other. */
  static async open(deps: DraftModelDeps): Promise<DraftModel> {
    const { binding, installed, device, target, sequences, contextTokens } = deps;
    const path = join(installed.directory, installed.weights);
    const model = await openModel({ binding, device }, path, readGgufHeader(path));
    let context: NativeContext | undefined;
    try {
      context = await openContext({ name: installed.name, binding, model, device, sequences, contextTokens }, 'f16');
      expectSameVocabulary(target, context);
      return new DraftModel(deps, model, context);
    } catch (error) {
      await context?.dispose();
      await model.dispose();
      throw error;
    }
  }

  /**
   * A drafter for one output, with a prompt cache of its own or without. It has no guesses while as many others draft as
   * there are sequences.
   */
  drafter(cache: PromptCache | undefined, signal: AbortSignal): Drafter {
    let slot: SequenceSlot | undefined;
    return {
      draft: (tokens, count) =>
        this.#tasks.run('draft', async () => {
          // The output has outgrown what this model has room for.
          if (tokens.length + count > this.#contextTokens) return [];
          if (slot === undefined && this.#slots.anyFree) slot = await this.#slots.take(tokens, cache);
          return slot === undefined ? [] : await this.#draft(slot, tokens, count, signal);
        }),
      release: () =>
        void this.#tasks.run('draft', async () => {
          if (slot !== undefined) this.#slots.release(slot, cache !== undefined);
        }),
    };
  }

  async close(): Promise<void> {
    await this.#tasks.run('draft', async () => {
      this.#sampler.dispose();
      await this.#context.dispose();
      await this.#model.dispose();
    });
  }

  async #draft(
    slot: SequenceSlot,
    tokens: readonly number[],
    count: number,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    this.#slots.rewind(slot, tokens);
    let place: number | undefined;
    while (slot.tokens.length < tokens.length && !signal.aborted) {
      place = await this.#evaluate(slot, tokens.slice(slot.tokens.length, slot.tokens.length + this.#sliceTokens));
    }
    const drafted: number[] = [];
    while (place !== undefined && drafted.length < count && !signal.aborted) {
      const token = await this.#context.sampleToken(place, this.#sampler);
      if (token < 0 || this.#model.isEogToken(token)) break;
      drafted.push(token);
      place = drafted.length < count ? await this.#evaluate(slot, [token]) : undefined;
    }
    return drafted;
  }

  async #evaluate(slot: SequenceSlot, tokens: readonly number[]): Promise<number | undefined> {
    this.#context.setThreads(this.#threads.for(tokens.length));
    this.#context.initBatch(tokens.length);
    const last = Uint32Array.of(tokens.length - 1);
    const [place] = this.#context.addToBatch(slot.id, slot.tokens.length, Uint32Array.from(tokens), last);
    await this.#context.decodeBatch();
    slot.tokens.push(...tokens);
    return place;
  }
}

function expectSameVocabulary(target: NativeContext, draft: NativeContext): void {
  try {
    target.ensureDraftContextIsCompatibleForSpeculative(draft);
  } catch (cause) {
    throw new Error('their vocabularies differ', { cause });
  }
}
