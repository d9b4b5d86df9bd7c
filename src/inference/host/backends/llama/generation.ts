import type { Clock } from '../../../../lib/clock.ts';
import type { OperationContext } from '../../backend.ts';
import type { GenerateEvent, GenerateInput, GenerateResult } from '../../operations/generate.ts';
import type { NativeContext } from './binding.ts';
import type { Constrainer } from './constrainer.ts';
import { OutputText } from './output-text.ts';
import type { PromptCache, SequenceSlot } from './sequence-slots.ts';
import type { TokenSampler } from './token-sampler.ts';
import type { Vocabulary } from './vocabulary.ts';

export interface GenerationParts {
  readonly input: GenerateInput;
  readonly prompt: readonly number[];
  readonly sampler: TokenSampler;
  readonly constrainer: Constrainer | undefined;
  readonly vocabulary: Vocabulary;
  /** Tokens that prompt and output may have together. */
  readonly contextTokens: number;
  readonly context: Pick<OperationContext<'generate'>, 'signal' | 'emit' | 'progress'>;
  readonly clock: Clock;
}

/** One output in the making: what of its prompt was read, what was generated, and when it is over. */
export class Generation {
  readonly prompt: readonly number[];
  readonly result: Promise<GenerateResult>;
  readonly #parts: GenerationParts;
  readonly #settled = Promise.withResolvers<GenerateResult>();
  readonly #output: OutputText;
  readonly #logprobs: NonNullable<GenerateResult['logprobs']>[number][] = [];
  #text = '';
  #slot: SequenceSlot | undefined;
  #cachedTokens = 0;
  #completionTokens = 0;
  /** The last token that was drawn; it is evaluated in the next turn. */
  #last: number | undefined;
  #finish: GenerateResult['finish'] = 'stop';
  #startMs = 0;
  #readMs = 0;

  constructor(parts: GenerationParts) {
    this.#parts = parts;
    this.prompt = parts.prompt;
    this.result = this.#settled.promise;
    this.#output = new OutputText(parts.input.stop);
  }

  get cache(): PromptCache | undefined {
    return this.#parts.input.promptCache;
  }

  get slot(): SequenceSlot {
    if (this.#slot === undefined) throw new Error('the generation has not begun');
    return this.#slot;
  }

  get aborted(): boolean {
    return this.#parts.context.signal.aborted;
  }

  /** Whether the prompt is still being read. */
  get reading(): boolean {
    return this.#last === undefined;
  }

  /** Tokens of the prompt whose state is not there yet. */
  get unread(): number {
    return this.prompt.length - this.slot.tokens.length;
  }

  onAbort(listener: () => void): void {
    this.#parts.context.signal.addEventListener('abort', listener, { once: true });
    if (this.aborted) listener();
  }

  begin(slot: SequenceSlot): void {
    this.#slot = slot;
    this.#cachedTokens = slot.tokens.length;
    this.#startMs = this.#parts.clock.monotonicMs();
  }

  /** Tokens to evaluate next, `budget` of the prompt at most. */
  next(budget: number): readonly number[] {
    if (this.#last !== undefined) return [this.#last];
    const start = this.slot.tokens.length;
    return this.prompt.slice(start, start + budget);
  }

  /** Which of the tokens that `next` gave need logits. */
  wanted(tokens: number): readonly number[] {
    const whole = !this.reading || this.slot.tokens.length + tokens === this.prompt.length;
    return whole ? [tokens - 1] : [];
  }

  /** Draws what follows at the places that were evaluated. The sequence keeps the first `keptTokens` of its tokens. */
  async take(native: NativeContext, places: Uint32Array): Promise<{ done: boolean; keptTokens: number }> {
    this.#parts.context.progress();
    const keptTokens = this.slot.tokens.length;
    const [place] = places;
    if (place === undefined) return { done: false, keptTokens };
    if (this.reading) this.#readMs = this.#parts.clock.monotonicMs();
    const token = await this.#parts.sampler.draw(native, place);
    return { done: await this.#add(native, place, token), keptTokens };
  }

  settle(): void {
    this.#give(this.#output.finish());
    const { input, sampler, clock } = this.#parts;
    sampler.dispose();
    this.#settled.resolve({
      finish: this.#finish,
      stopText: this.#output.stopText,
      text: this.#text,
      logprobs: input.topLogprobs === undefined || input.stream ? undefined : this.#logprobs,
      promptTokens: this.prompt.length,
      cachedTokens: this.#cachedTokens,
      completionTokens: this.#completionTokens,
      speculation: undefined,
      prefillMs: this.#readMs - this.#startMs,
      decodeMs: clock.monotonicMs() - this.#readMs,
    });
  }

  fail(error: unknown): void {
    this.#parts.sampler.dispose();
    this.#settled.reject(error);
  }

  abandon(): void {
    this.fail(this.#parts.context.signal.reason);
  }

  /** Takes in one token; true when the output is over. */
  async #add(native: NativeContext, place: number, token: number): Promise<boolean> {
    const { input, vocabulary, sampler, constrainer, contextTokens } = this.#parts;
    if (token < 0 || vocabulary.ends.has(token)) return true;
    this.#last = token;
    this.#completionTokens += 1;
    const bytes = constrainer?.shows(token) ?? vocabulary.bytesOf(token);
    const logprob = input.topLogprobs === undefined ? undefined : await sampler.logprobOf(native, place, token);
    this.#give(this.#output.push(bytes, logprob));
    if (this.#output.stopText !== undefined) return true;
    const grammar = constrainer?.take(bytes);
    if (grammar !== undefined) sampler.follow(grammar);
    const full = this.prompt.length + this.#completionTokens >= contextTokens;
    if (!full && this.#completionTokens < input.tokensMax) return false;
    this.#finish = 'length';
    return true;
  }

  #give(event: GenerateEvent | undefined): void {
    if (event === undefined) return;
    if (this.#parts.input.stream) this.#parts.context.emit(event);
    else {
      this.#text += event.text;
      this.#logprobs.push(...(event.logprobs ?? []));
    }
  }
}
