import type { Sampling, TokenLogprob } from '../../../operations/generate.ts';
import type { LlamaBinding, NativeContext, NativeModel, NativeSampler, NativeSamplerConfig } from '../binding.ts';
import type { Vocabulary } from '../vocabulary.ts';
import type { OutputLogprob } from './output-text.ts';
import type { TimedGrammar } from './timed-grammar.ts';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

interface TokenSamplerDeps {
  readonly binding: LlamaBinding;
  readonly model: NativeModel;
  readonly vocabulary: Vocabulary;
  readonly sampling: Sampling;
  readonly prompt: readonly number[];
  /** Tokens that the penalty for repetition looks back on. */
  readonly historyTokens: number;
  /** Tokens that may not come. */
  readonly banned: Iterable<number>;
  readonly topLogprobs: number | undefined;
}

/**
 * Chooses the tokens of one output in native code. What is not asked for is not in the chain of samplers: the likeliest
 * token costs one pass over the logits, a small top-k one partial sort.
 */
export class TokenSampler {
  readonly #sampler: NativeSampler;
  readonly #observer: NativeSampler | undefined;
  readonly #deps: TokenSamplerDeps;
  readonly #config: NativeSamplerConfig;
  readonly #fixedBias: Map<number, number>;
  readonly #counts = new Map<number, number>();
  readonly #history: number[] | undefined;
  #grammar: TimedGrammar | undefined;
  /** Whether the native sampler knows the configuration as it is now. */
  #applied = false;

  constructor(deps: TokenSamplerDeps) {
    const { sampling, binding, model } = deps;
    this.#deps = deps;
    this.#sampler = new binding.AddonSampler(model);
    this.#config = chainOf(sampling);
    this.#fixedBias = new Map(sampling.logitBias);
    for (const token of deps.banned) this.#fixedBias.set(token, Number.NEGATIVE_INFINITY);
    this.#history = sampling.repetitionPenalty === 1 ? undefined : deps.prompt.slice(-deps.historyTokens);
    if (deps.topLogprobs !== undefined) {
      this.#observer = new binding.AddonSampler(model);
      this.#observer.applyConfig({ temperature: 0 });
    }
  }

  /** From the next token on the output has to follow the grammar. */
  follow(grammar: TimedGrammar): void {
    this.#grammar = grammar;
  }

  /** The next token after the given place of the last batch; -1 where none can follow. */
  async draw(context: NativeContext, place: number): Promise<number> {
    if (!this.#applied) this.#apply();
    let token = await context.sampleToken(place, this.#sampler);
    // Most tokens are allowed: which ones are not is asked only when one was not. The distribution is the same.
    if (token >= 0 && this.#grammar?.accepts(token) === false) {
      this.#apply(this.#grammar.refused());
      token = await context.sampleToken(place, this.#sampler);
      this.#applied = false;
      if (token >= 0 && !this.#grammar.accepts(token)) return -1;
    }
    if (token < 0) return token;
    this.#grammar?.commit(token);
    this.#remember(token);
    return token;
  }

  /** Log probability of a token by the model alone, before bias, penalties, temperature and grammar. */
  async logprobOf(context: NativeContext, place: number, token: number): Promise<OutputLogprob | undefined> {
    if (this.#observer === undefined) return undefined;
    const top = this.#deps.topLogprobs ?? 0;
    const wanted = [[token], false, false, true, top] as const;
    const answer = await context.sampleToken(place, this.#observer, false, false, wanted, true);
    const [likeliest, , , pairs, totalWeight] = answer;
    const logits = new Map<number, number>();
    for (let at = 0; at < pairs.length; at += 2) logits.set(pairs[at] as number, pairs[at + 1] as number);
    const zero = (logits.get(likeliest) ?? Number.NaN) + Math.log(totalWeight);
    const show = (each: number) => this.#logprob(each, (logits.get(each) ?? Number.NaN) - zero);
    const best = [...logits.keys()].slice(0, top);
    return { ...show(token), top: best.map(show) };
  }

  /** A token in front of which the model has read nothing. */
  unforeseen(token: number): OutputLogprob {
    return { ...this.#logprob(token, Number.NaN), top: [] };
  }

  dispose(): void {
    this.#sampler.dispose();
    this.#observer?.dispose();
  }

  #logprob(token: number, logprob: number): TokenLogprob {
    const { vocabulary } = this.#deps;
    const bytes = vocabulary.spelledBytes(token);
    return { token: decoder.decode(bytes), bytes: [...bytes], logprob };
  }

  #remember(token: number): void {
    const { frequencyPenalty, presencePenalty } = this.#deps.sampling;
    if (frequencyPenalty !== 0 || presencePenalty !== 0) {
      this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
      this.#applied = false;
    }
    this.#history?.push(token);
  }

  #apply(refused: Uint32Array = new Uint32Array(0)): void {
    const { frequencyPenalty, presencePenalty, repetitionPenalty } = this.#deps.sampling;
    const config: NativeSamplerConfig = { ...this.#config };
    const bias = new Map(this.#fixedBias);
    for (const [token, count] of this.#counts) {
      bias.set(token, (bias.get(token) ?? 0) - count * frequencyPenalty - presencePenalty);
    }
    if (bias.size + refused.length > 0) {
      const keys = new Uint32Array(bias.size + refused.length);
      const values = new Float32Array(keys.length).fill(Number.NEGATIVE_INFINITY);
      keys.set([...bias.keys()]);
      values.set([...bias.values()]);
      keys.set(refused, bias.size);
      config.tokenBiasKeys = keys;
      config.tokenBiasValues = values;
    }
    if (this.#history !== undefined) {
      config.repeatPenalty = repetitionPenalty;
      config.repeatPenaltyMaxTokens = this.#deps.historyTokens;
      config.repeatPenaltyTokens = Uint32Array.from(this.#history.slice(-this.#deps.historyTokens));
    }
    this.#sampler.applyConfig(config);
    this.#applied = true;
  }
}

function chainOf({ temperature, topK, topP, minP, seed }: Sampling): NativeSamplerConfig {
  if (temperature <= 0) return { temperature: 0 };
  const config: NativeSamplerConfig = { temperature, seed: seed === undefined ? randomSeed() : seed >>> 0 };
  if (topK > 0) config.topK = topK;
  if (topP < 1) config.topP = topP;
  if (minP > 0) config.minP = minP;
  return config;
}

function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}
