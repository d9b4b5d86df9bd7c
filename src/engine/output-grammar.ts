import { callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

interface VocabularyTokens {
  /** Bytes of each token; none for tokens without a text. */
  readonly words: readonly Uint8Array[];
  /** Tokens that end an output. */
  readonly ends: Iterable<number>;
  /** Tokens whose text counts only where a grammar is opened with them. */
  readonly control: readonly number[];
}

/** The vocabulary of one model, which all grammars of its outputs share. It stays open for the life of the process. */
export class GrammarVocabulary {
  readonly #handle: number;

  constructor({ words, ends, control }: VocabularyTokens) {
    const bytes = Buffer.concat(words);
    const lengths = Uint32Array.from(words, ({ length }) => length);
    this.#handle = callNative(() => nativeAddon().openVocabulary(bytes, lengths, [...ends], [...control]));
  }

  /**
   * A GBNF grammar for one output; `shown` are control tokens that count as their text. Throws
   * `unsupported_response_format` for one that cannot be read or is too ambiguous.
   */
  open(gbnf: string, shown: readonly number[]): OutputGrammar {
    return new OutputGrammar(callNative(() => nativeAddon().openGrammar(this.#handle, gbnf, [...shown])));
  }
}

/**
 * One output that is held to a grammar. Each call does a bounded amount of work, and throws
 * `unsupported_response_format` where that is not enough.
 */
export class OutputGrammar {
  readonly #handle: number;

  constructor(handle: number) {
    this.#handle = handle;
  }

  /** Whether the token may come next. */
  accepts(token: number): boolean {
    return callNative(() => nativeAddon().grammarAccepts(this.#handle, token));
  }

  /** Goes on behind a token that is accepted; a token that ends outputs changes nothing. */
  commit(token: number): void {
    callNative(() => nativeAddon().grammarCommit(this.#handle, token));
  }

  /** Goes on behind a text; false where the grammar does not allow it, after which nothing more may be asked. */
  commitText(text: string): boolean {
    return callNative(() => nativeAddon().grammarCommitText(this.#handle, text));
  }

  /** All tokens that may not come next, ascending. */
  refused(): Uint32Array {
    return callNative(() => nativeAddon().grammarRefused(this.#handle));
  }

  close(): void {
    callNative(() => nativeAddon().closeGrammar(this.#handle));
  }
}
