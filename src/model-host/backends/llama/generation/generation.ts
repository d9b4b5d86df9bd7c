import { must } from '../../../../lib/assert.ts';
import type { Clock } from '../../../../lib/clock.ts';
import type { OperationContext } from '../../../backend.ts';
import {
  type GenerateEvent,
  type GenerateInput,
  type GenerateResult,
  type SpeculationReport,
  thinkEnd,
} from '../../../operations/generate.ts';
import type { NativeContext } from '../binding.ts';
import type { Vocabulary } from '../vocabulary.ts';
import type { Constrainer } from './constrainer.ts';
import type { Drafter } from './drafter.ts';
import { OutputText } from './output-text.ts';
import type { PromptCache, SequenceSlot } from './sequence-slots.ts';
import type { TokenSampler } from './token-sampler.ts';

export interface RunningSpeculation {
  readonly drafter: Drafter | undefined;
  readonly tokensAtOnce: number;
  /** Why nothing is drafted. */
  readonly disabledReason: string | undefined;
}

/** Drafting rests for a while when fewer than this share of the last drafted tokens came true. */
const acceptedShareMin = 0.25;
const judgedTokens = 24;
const restTurns = 16;

export interface GenerationDeps {
  readonly input: GenerateInput;
  readonly prompt: readonly number[];
  /** Makes the sampler when the generation begins: it holds room for the whole vocabulary. */
  readonly openSampler: () => TokenSampler;
  readonly constrainer: Constrainer | undefined;
  readonly speculation: RunningSpeculation | undefined;
  readonly vocabulary: Vocabulary;
  /** Tokens that prompt and output may have together. */
  readonly contextTokens: number;
  readonly context: Pick<OperationContext<'generate'>, 'signal' | 'emit' | 'progress'>;
  readonly clock: Clock;
}

/** One generation: how much of its prompt has been read, the tokens generated so far, and its end. */
export class Generation {
  readonly #deps: GenerationDeps;
  /** The tokens to read before tokens are drawn: the prompt, and what was generated where there was less room. */
  #prompt: readonly number[];
  #settled = Promise.withResolvers<GenerateResult | 'outgrown'>();
  readonly #output: OutputText;
  readonly #logprobs: NonNullable<GenerateResult['logprobs']>[number][] = [];
  /** The part of the prompt that the output begins with. */
  readonly #echo: ReturnType<Vocabulary['shown']>;
  #text = '';
  #slot: SequenceSlot | undefined;
  #sampler: TokenSampler | undefined;
  #cachedTokens = 0;
  #completionTokens = 0;
  #thoughtTokens: number | undefined;
  /** The end of what was shown, where a mark may have begun. */
  #tail = '';
  /** The last token that was drawn; it is evaluated in the next step. */
  #last: number | undefined;
  /** Guesses at what follows `#last`. */
  #draft: readonly number[] = [];
  #drafted = 0;
  #accepted = 0;
  /** Drafted and accepted when drafting was last judged. */
  #judged = { drafted: 0, accepted: 0 };
  #restTurns = 0;
  #finish: GenerateResult['finish'] = 'stop';
  #startMs = 0;
  #readMs = 0;

  constructor(deps: GenerationDeps) {
    this.#deps = deps;
    this.#prompt = deps.prompt;
    this.#output = new OutputText(deps.input.stop);
    this.#echo = deps.vocabulary.shown(deps.input.echo ?? { tokens: [] });
  }

  get prompt(): readonly number[] {
    return this.#prompt;
  }

  /** The result, or that the generation has to go on in a longer state. */
  get outcome(): Promise<GenerateResult | 'outgrown'> {
    return this.#settled.promise;
  }

  /** A prompt whose log probabilities are told has to be read whole. */
  get cache(): PromptCache | undefined {
    return this.#tellsPrompt ? undefined : this.#deps.input.promptCache;
  }

  get #tellsPrompt(): boolean {
    const { echo, topLogprobs } = this.#deps.input;
    return echo !== undefined && topLogprobs !== undefined;
  }

  get slot(): SequenceSlot {
    if (this.#slot === undefined) throw new Error('the generation has not begun');
    return this.#slot;
  }

  get aborted(): boolean {
    return this.#deps.context.signal.aborted;
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
    this.#deps.context.signal.addEventListener('abort', listener, { once: true });
    if (this.aborted) listener();
  }

  begin(slot: SequenceSlot): void {
    this.#slot = slot;
    if (this.#sampler !== undefined) return;
    this.#sampler = this.#deps.openSampler();
    this.#cachedTokens = slot.tokens.length;
    this.#startMs = this.#deps.clock.monotonicMs();
  }

  /** Gets ready to go on elsewhere. */
  outgrow(): void {
    const { promise: _outcome, resolve } = this.#settled;
    this.#prompt = [...this.slot.tokens, must(this.#last, 'what is being generated has a last token')];
    this.#last = undefined;
    this.#draft = [];
    this.#slot = undefined;
    this.#settled = Promise.withResolvers();
    resolve('outgrown');
  }

  /** Drafts, where that is wanted, before the tokens of the next step are asked for. */
  async prepare(): Promise<void> {
    this.#draft = [];
    const { speculation, input, contextTokens } = this.#deps;
    if (speculation?.drafter === undefined || this.#last === undefined || !this.#worthDrafting()) return;
    const most = Math.min(input.tokensMax, contextTokens - this.#deps.prompt.length);
    const room = most - this.#completionTokens - 1;
    const count = Math.min(speculation.tokensAtOnce, room);
    if (count <= 0) return;
    try {
      this.#draft = await speculation.drafter.draft([...this.slot.tokens, this.#last], count);
    } catch {
      // The output does not need it.
      this.#restTurns = Number.POSITIVE_INFINITY;
    }
    this.#drafted += this.#draft.length;
  }

  /** Tokens to evaluate next, `budget` of the prompt at most. */
  next(budget: number): readonly number[] {
    if (this.#last !== undefined) return [this.#last, ...this.#draft];
    const start = this.slot.tokens.length;
    return this.prompt.slice(start, start + budget);
  }

  /** Which of the tokens that `next` gave need logits. */
  wanted(tokens: number): readonly number[] {
    if (!this.reading || (this.#tellsPrompt && this.#completionTokens === 0))
      return Array.from({ length: tokens }, (_, at) => at);
    return this.slot.tokens.length + tokens === this.prompt.length ? [tokens - 1] : [];
  }

  /** Draws what follows at the places that were evaluated. The sequence keeps the first `keptTokens` of its tokens. */
  async take(native: NativeContext, evaluated: Uint32Array): Promise<{ done: boolean; keptTokens: number }> {
    this.#deps.context.progress();
    const sampler = must(this.#sampler, 'a generation that is under way has a sampler');
    const isFirst = this.#completionTokens === 0;
    const places = isFirst && this.#tellsPrompt ? await this.#tellPrompt(sampler, native, evaluated) : evaluated;
    if (places.length === 0) return { done: false, keptTokens: this.slot.tokens.length };
    if (isFirst) this.#promptRead();
    if (this.#deps.input.tokensMax === 0) {
      this.#finish = 'length';
      return { done: true, keptTokens: this.slot.tokens.length };
    }
    const behind = this.slot.tokens.length - places.length;
    for (const [at, place] of places.entries()) {
      const token = await sampler.draw(native, place);
      const done = await this.#add(sampler, native, place, token);
      const agreed = !done && this.#draft[at] === token;
      if (agreed) this.#accepted += 1;
      else return { done, keptTokens: behind + at + 1 };
    }
    return { done: false, keptTokens: this.slot.tokens.length };
  }

  /** Notes the log probabilities of the tokens that follow the places; gives the place that the output follows. */
  async #tellPrompt(sampler: TokenSampler, native: NativeContext, places: Uint32Array): Promise<Uint32Array> {
    const behind = this.slot.tokens.length - places.length;
    const from = this.#prompt.length - this.#echo.tokens;
    const [first] = this.#prompt;
    if (behind === 0 && from === 0 && first !== undefined) this.#logprobs.push(sampler.unforeseen(first));
    for (const [at, place] of places.entries()) {
      const token = this.#prompt[behind + at + 1];
      if (token === undefined) return places.subarray(at);
      if (behind + at + 1 < from) continue;
      const logprob = await sampler.logprobOf(native, place, token);
      if (logprob !== undefined) this.#logprobs.push(logprob);
    }
    return places.subarray(places.length);
  }

  #promptRead(): void {
    const { input, clock, context } = this.#deps;
    this.#readMs = clock.monotonicMs();
    if (input.echo !== undefined) {
      const logprobs = this.#logprobs.splice(0);
      this.#give({ text: this.#echo.text, ...(logprobs.length === 0 ? {} : { logprobs }) });
    }
    if (input.tellsPromptRead === true) context.emit({ text: '' });
  }

  settle(): void {
    this.#give(this.#output.finish());
    const { input, clock } = this.#deps;
    this.#settled.resolve({
      finish: this.#finish,
      stopText: this.#output.stopText,
      text: this.#text,
      logprobs: input.topLogprobs === undefined || input.stream ? undefined : this.#logprobs,
      promptTokens: this.#deps.prompt.length,
      cachedTokens: this.#cachedTokens,
      completionTokens: this.#completionTokens,
      thoughtTokens: this.#thoughtTokens,
      speculation: this.#report(),
      prefillMs: this.#readMs - this.#startMs,
      decodeMs: clock.monotonicMs() - this.#readMs,
    });
  }

  fail(error: unknown): void {
    this.#settled.reject(error);
  }

  abandon(): void {
    this.fail(this.#deps.context.signal.reason);
  }

  /** Frees what it holds; once it is over, or never began. */
  close(): void {
    this.#sampler?.dispose();
    this.#deps.speculation?.drafter?.release();
  }

  #report(): SpeculationReport | undefined {
    const { speculation } = this.#deps;
    if (speculation === undefined) return undefined;
    return {
      decision: speculation.drafter === undefined ? 'disabled' : 'enabled',
      disabledReason: speculation.disabledReason,
      draftedTokens: this.#drafted,
      acceptedTokens: this.#accepted,
    };
  }

  #worthDrafting(): boolean {
    if (this.#restTurns > 0) {
      this.#restTurns -= 1;
      return false;
    }
    const drafted = this.#drafted - this.#judged.drafted;
    if (drafted < judgedTokens) return true;
    const accepted = this.#accepted - this.#judged.accepted;
    this.#judged = { drafted: this.#drafted, accepted: this.#accepted };
    if (accepted < drafted * acceptedShareMin) this.#restTurns = restTurns;
    return this.#restTurns === 0;
  }

  /** Takes in one token; true when the output is over. */
  async #add(sampler: TokenSampler, native: NativeContext, place: number, token: number): Promise<boolean> {
    const { input, vocabulary, constrainer, contextTokens } = this.#deps;
    if (token < 0 || vocabulary.ends.has(token)) return true;
    this.#last = token;
    this.#completionTokens += 1;
    const bytes = constrainer?.shows(token) ?? vocabulary.bytesOf(token);
    const logprob = input.topLogprobs === undefined ? undefined : await sampler.logprobOf(native, place, token);
    this.#give(this.#output.push(bytes, logprob));
    if (this.#output.stopText !== undefined) return true;
    const grammar = constrainer?.take(bytes);
    if (grammar !== undefined) sampler.follow(grammar);
    const full = this.#deps.prompt.length + this.#completionTokens >= contextTokens;
    if (!full && this.#completionTokens < input.tokensMax) return false;
    this.#finish = 'length';
    return true;
  }

  #give(event: GenerateEvent | undefined): void {
    if (event === undefined) return;
    const text = this.#tail + event.text;
    if (text.includes(thinkEnd)) this.#thoughtTokens ??= this.#completionTokens;
    this.#tail = text.slice(1 - thinkEnd.length);
    if (this.#deps.input.stream) this.#deps.context.emit(event);
    else {
      this.#text += event.text;
      this.#logprobs.push(...(event.logprobs ?? []));
    }
  }
}
