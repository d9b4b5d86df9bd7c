import type { OperationContext } from '../../backend.ts';
import type { EmbedFault, EmbedInput, EmbedResult, EmbedText } from '../../operations/embed.ts';
import { contextOverflow } from '../context-overflow.ts';
import { truncateTokens } from '../truncate-tokens.ts';
import type { PooledContext } from './pooled-context.ts';
import type { Vocabulary } from './vocabulary.ts';

type Watch = Pick<OperationContext<'embed'>, 'signal' | 'priority' | 'progress'>;

/** Vectors of texts. */
export class Embedder {
  readonly #context: PooledContext;
  readonly #vocabulary: Vocabulary;
  readonly #contextTokens: number;
  readonly #dimension: number;
  readonly #unit: boolean;

  constructor(
    context: PooledContext,
    vocabulary: Vocabulary,
    sizes: { readonly contextTokens: number; readonly dimension: number },
    unit: boolean,
  ) {
    this.#context = context;
    this.#vocabulary = vocabulary;
    this.#contextTokens = sizes.contextTokens;
    this.#dimension = sizes.dimension;
    this.#unit = unit;
  }

  async embed({ texts, truncate, allOrNothing }: EmbedInput, watch: Watch): Promise<EmbedResult> {
    const faults: EmbedFault[] = [];
    const inputs = texts.map((text, index) => {
      const made = this.#tokens(text, truncate);
      if (!('code' in made)) return made;
      faults.push({ index, ...made });
      return undefined;
    });
    const tokens = Uint32Array.from(inputs, (each) => each?.length ?? 0);
    const dense = new Float32Array(texts.length * this.#dimension);
    if (allOrNothing && faults.length > 0) return { dense, dimension: this.#dimension, tokens, faults };
    const wanted = [...inputs.entries()].filter(
      (entry): entry is [number, readonly number[]] => entry[1] !== undefined,
    );
    const read = wanted.map(([, each]) => each);
    for (const [at, vector] of (await this.#context.read(read, watch)).entries()) {
      dense.set(this.#unit ? scaled(vector) : vector, (wanted[at]?.[0] ?? 0) * this.#dimension);
    }
    return { dense, dimension: this.#dimension, tokens, faults };
  }

  #tokens(text: EmbedText, truncate: EmbedInput['truncate']): readonly number[] | Omit<EmbedFault, 'index'> {
    const given = typeof text !== 'string';
    const wrong = given
      ? text.find((token) => !(Number.isInteger(token) && token >= 0 && token < this.#vocabulary.size))
      : undefined;
    if (wrong !== undefined) {
      const message = `the token ${wrong} is not one of the ${this.#vocabulary.size} of the model`;
      return { code: 'invalid_request', message };
    }
    const plain = given ? text : [...this.#vocabulary.plainTokens(text)];
    const marks = given ? 0 : this.#vocabulary.framed([]).length;
    const kept = truncateTokens(plain, this.#contextTokens - marks, truncate);
    if (kept === undefined) {
      const message = contextOverflow(this.#contextTokens, `the input has ${plain.length + marks}`);
      return { code: 'context_length_exceeded', message };
    }
    const framed = given ? kept : this.#vocabulary.framed(kept);
    return framed.length > 0 ? framed : { code: 'invalid_request', message: 'the input has no tokens' };
  }
}

/** The vector at length one; one of length zero stays. */
function scaled(vector: Float64Array): Float64Array {
  const length = Math.hypot(...vector);
  return length === 0 ? vector : vector.map((each) => each / length);
}
