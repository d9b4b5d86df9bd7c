import type { Constraint } from '../../operations/generate.ts';
import type { LlamaBinding, NativeGrammar, NativeGrammarState, NativeModel } from './binding.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Decides when the grammar of an output sets in. */
export class Constrainer {
  readonly #binding: LlamaBinding;
  readonly #model: NativeModel;
  readonly #vocabulary: Vocabulary;
  readonly #grammar: NativeGrammar;
  readonly #after: string | undefined;
  readonly #atStart: boolean;
  /** Texts that may come as control tokens and are to be seen. */
  readonly #shown: readonly string[];
  readonly #decoder = new TextDecoder();
  /** The end of the output, as long as the text that is waited for can still begin in it. */
  #tail = '';
  #begun = false;

  constructor(
    binding: LlamaBinding,
    model: NativeModel,
    vocabulary: Vocabulary,
    grammar: NativeGrammar,
    { after, atStart = false, marks = [] }: Omit<Constraint, 'grammar'>,
  ) {
    this.#binding = binding;
    this.#model = model;
    this.#vocabulary = vocabulary;
    this.#grammar = grammar;
    this.#after = after === undefined || after === '' ? undefined : after;
    this.#atStart = atStart;
    this.#shown = [...(this.#after === undefined ? [] : [this.#after]), ...marks];
  }

  /** The grammar, where it holds from the first token. */
  start(): NativeGrammarState | undefined {
    if (this.#after !== undefined) return undefined;
    this.#begun = true;
    return this.#newState();
  }

  /** Bytes of a token that is not shown elsewhere: the text that is waited for may be a control token. */
  shows(token: number): Uint8Array | undefined {
    if (this.#shown.length === 0 || !this.#vocabulary.isControl(token)) return undefined;
    const text = this.#vocabulary.textOf(token);
    const shown = text !== '' && this.#shown.some((mark) => mark.includes(text));
    return shown ? new TextEncoder().encode(text) : undefined;
  }

  /** The grammar, when it sets in behind these bytes. What the token has beyond the text is held to it already. */
  take(bytes: Uint8Array): NativeGrammarState | undefined {
    if (this.#begun || this.#after === undefined) return undefined;
    this.#tail += this.#decoder.decode(bytes, { stream: true });
    if (this.#atStart) {
      this.#tail = this.#tail.trimStart();
      // What begins otherwise is free to its end.
      this.#begun = !this.#after.startsWith(this.#tail.slice(0, this.#after.length));
      if (this.#begun || this.#tail.length < this.#after.length) return undefined;
    }
    const at = this.#tail.indexOf(this.#after);
    if (at < 0) {
      this.#tail = this.#tail.slice(-this.#after.length);
      return undefined;
    }
    this.#begun = true;
    return this.#stateAfter(this.#tail.slice(at + this.#after.length));
  }

  /** Undefined where the output has broken the grammar in the token that began it: nothing is left to hold it to. */
  #stateAfter(text: string): NativeGrammarState | undefined {
    const state = this.#newState();
    try {
      for (const token of text === '' ? [] : this.#vocabulary.plainTokens(text)) {
        this.#binding.AddonSampler.acceptGrammarEvaluationStateToken(state, token);
      }
      return state;
    } catch {
      return undefined;
    }
  }

  #newState(): NativeGrammarState {
    return new this.#binding.AddonGrammarEvaluationState(this.#model, this.#grammar);
  }
}
