import type { NativeContext } from '../binding.ts';

/** One sequence of a context: a place where one generation runs, and the state that the last one left there. */
export interface SequenceSlot {
  readonly id: number;
  /** Tokens whose state lies in the sequence, in order. */
  readonly tokens: number[];
  key: string | undefined;
  busy: boolean;
  /** Rises with each use; 0 for one never used. */
  lastUse: number;
}

export interface PromptCache {
  readonly key: string | undefined;
}

/** Copying a state is cheaper than reading its tokens again from about here, in tokens. */
const copiedTokensMin = 32;

/**
 * The sequences of one context. A generation with a prompt cache starts from the state that shares the longest
 * beginning with its prompt, in place or as a copy; one without starts from nothing and leaves nothing.
 */
export class SequenceSlots {
  readonly #context: NativeContext;
  readonly #slots: readonly SequenceSlot[];
  #uses = 0;

  constructor(context: NativeContext, count: number) {
    this.#context = context;
    this.#slots = Array.from({ length: count }, (_, id) => ({
      id,
      tokens: [],
      key: undefined,
      busy: false,
      lastUse: 0,
    }));
  }

  get anyFree(): boolean {
    return this.#slots.some(({ busy }) => !busy);
  }

  /** Takes a free sequence, of which there must be one; its tokens are the beginning of the prompt, never all of it. */
  async take(prompt: readonly number[], cache: PromptCache | undefined): Promise<SequenceSlot> {
    const slot = cache === undefined ? this.#oldest() : await this.#prepared(prompt, cache);
    if (cache === undefined) this.truncate(slot, 0);
    slot.busy = true;
    slot.key = cache?.key;
    this.#uses += 1;
    slot.lastUse = this.#uses;
    return slot;
  }

  /** Takes a sequence that is free and holds nothing. */
  takeEmpty(): SequenceSlot | undefined {
    const slot = this.#slots.find(({ busy, tokens }) => !busy && tokens.length === 0);
    if (slot !== undefined) slot.busy = true;
    return slot;
  }

  release(slot: SequenceSlot, keep: boolean): void {
    if (!keep) this.truncate(slot, 0);
    slot.busy = false;
  }

  /** Forgets what lies behind the first `length` tokens; everything, where the model cannot forget a part. */
  truncate(slot: SequenceSlot, length: number): void {
    if (slot.tokens.length <= length) return;
    const removed = this.#context.removeTokenCellsFromSequence(slot.id, length, -1);
    if (removed) slot.tokens.length = length;
    else {
      this.#context.disposeSequence(slot.id);
      slot.tokens.length = 0;
    }
  }

  /** Forgets what is not the beginning of these tokens, and the last of them. */
  rewind(slot: SequenceSlot, tokens: readonly number[]): void {
    this.truncate(slot, sharedLength(slot.tokens, tokens));
  }

  async #prepared(prompt: readonly number[], { key }: PromptCache): Promise<SequenceSlot> {
    const known = this.#slots.map((slot) => ({ slot, shared: sharedLength(slot.tokens, prompt) }));
    known.sort((a, b) => b.shared - a.shared || Number(b.slot.key === key) - Number(a.slot.key === key));
    const [best] = known;
    const target = this.#oldest();
    if (best === undefined || best.shared === 0) {
      this.truncate(target, 0);
      return target;
    }
    const spare = best.slot !== target && best.shared >= copiedTokensMin;
    const loses = best.shared < best.slot.tokens.length / 2;
    if (best.slot.busy || (loses && best.slot.key !== key && spare)) {
      this.truncate(target, 0);
      if (spare) await this.#copy(best.slot, target);
      this.rewind(target, prompt);
      return target;
    }
    this.truncate(best.slot, best.shared);
    return best.slot;
  }

  async #copy(source: SequenceSlot, target: SequenceSlot): Promise<void> {
    await this.#context.copySequenceStateFromOtherSequence(target.id, source.id);
    target.tokens.push(...source.tokens);
  }

  #oldest(): SequenceSlot {
    const free = this.#slots.filter(({ busy }) => !busy);
    // A sequence that holds nothing goes first, the first of them so that busy ones are neighbours; then what was used
    // longest ago.
    const slot = free.find(({ tokens }) => tokens.length === 0) ?? free.toSorted((a, b) => a.lastUse - b.lastUse)[0];
    if (slot === undefined) throw new Error('no sequence is free');
    return slot;
  }
}

/** Tokens that both begin with; one less than the prompt at most, because its last token has to be evaluated. */
function sharedLength(tokens: readonly number[], prompt: readonly number[]): number {
  const most = Math.min(tokens.length, prompt.length - 1);
  let length = 0;
  while (length < most && tokens[length] === prompt[length]) length += 1;
  return length;
}
