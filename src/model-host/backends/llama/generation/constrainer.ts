import { GrammarVocabulary } from '../../../../engine/output-grammar.ts';
import type { Constraint } from '../../../operations/generate.ts';
import type { Vocabulary } from '../vocabulary.ts';
import { TimedGrammar } from './timed-grammar.ts';

/** Opens the grammars of one model's outputs. */
export class Grammars {
  readonly #vocabulary: Vocabulary;
  #trie: GrammarVocabulary | undefined;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  /** Throws `unsupported_response_format` for a grammar that cannot be used. */
  open(constraint: Constraint): Constrainer {
    const { after, marks = [] } = constraint;
    const shown = [...(after === undefined ? [] : [after]), ...marks];
    const shownTokens = this.#vocabulary.controlTokens.filter((token) =>
      isShown(this.#vocabulary.textOf(token), shown),
    );
    // Built from the whole vocabulary, and most models are never asked for a grammar.
    this.#trie ??= this.#buildTrie();
    const trie = this.#trie;
    const grammar = new TimedGrammar(() => trie.open(constraint.grammar, shownTokens));
    return new Constrainer(this.#vocabulary, grammar, new Set(shownTokens), constraint);
  }

  #buildTrie(): GrammarVocabulary {
    const { size, ends, controlTokens } = this.#vocabulary;
    const words = Array.from({ length: size }, (_, token) => this.#vocabulary.spelledBytes(token));
    return new GrammarVocabulary({ words, ends, control: controlTokens });
  }
}

function isShown(text: string, shown: readonly string[]): boolean {
  return text !== '' && shown.some((mark) => mark.includes(text));
}

/** Decides when the grammar of an output sets in. */
export class Constrainer {
  readonly #vocabulary: Vocabulary;
  readonly #grammar: TimedGrammar;
  /** Control tokens that are seen in the output. */
  readonly #shown: ReadonlySet<number>;
  readonly #after: string | undefined;
  readonly #atStart: boolean;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** The end of the output, as long as the text that is waited for can still begin in it. */
  #tail = '';
  #begun = false;

  constructor(
    vocabulary: Vocabulary,
    grammar: TimedGrammar,
    shown: ReadonlySet<number>,
    { after, atStart = false }: Omit<Constraint, 'grammar'>,
  ) {
    this.#vocabulary = vocabulary;
    this.#grammar = grammar;
    this.#shown = shown;
    this.#after = after === undefined || after === '' ? undefined : after;
    this.#atStart = atStart;
  }

  /** The grammar, where it holds from the first token. */
  start(): TimedGrammar | undefined {
    if (this.#after !== undefined) return undefined;
    this.#begun = true;
    return this.#grammar;
  }

  /** Bytes of a control token that is seen in the output: the text that is waited for may be one. */
  shows(token: number): Uint8Array | undefined {
    return this.#shown.has(token) ? this.#vocabulary.spelledBytes(token) : undefined;
  }

  /** The grammar, when it sets in behind these bytes. What the token has beyond the text is held to it already. */
  take(bytes: Uint8Array): TimedGrammar | undefined {
    if (this.#begun || this.#after === undefined) return undefined;
    this.#tail += this.#decoder.decode(bytes, { stream: true });
    if (this.#atStart) {
      this.#tail = this.#tail.trimStart();
      // An output that begins otherwise is free to its end.
      this.#begun = !this.#after.startsWith(this.#tail.slice(0, this.#after.length));
      if (this.#begun || this.#tail.length < this.#after.length) return undefined;
    }
    const at = this.#tail.indexOf(this.#after);
    if (at < 0) {
      this.#tail = this.#tail.slice(-this.#after.length);
      return undefined;
    }
    this.#begun = true;
    // Where the output breaks the grammar in the token that began it, nothing is left to hold it to.
    const follows = this.#grammar.commitText(this.#tail.slice(at + this.#after.length));
    return follows ? this.#grammar : undefined;
  }

  close(): void {
    this.#grammar.close();
  }
}
