import { ServiceError } from '../../../protocol/service-error.ts';
import type { OperationContext } from '../../backend.ts';
import type { RerankInput, RerankResult } from '../../operations/rerank.ts';
import { contextOverflow } from '../context-overflow.ts';
import { truncateTokens } from '../truncate-tokens.ts';
import type { PooledContext } from './pooled-context.ts';
import type { Vocabulary } from './vocabulary.ts';

interface RerankerDeps {
  readonly context: PooledContext;
  readonly vocabulary: Vocabulary;
  readonly contextTokens: number;
  /** How the file wants query and text put together, with `{query}` and `{document}` in it. */
  readonly template: string | undefined;
  /** The model answers a chance already, not a logit. */
  readonly answersChance: boolean;
}

/** How well texts fit a query: the chance that they do, 0 to 1. */
export class Reranker {
  readonly #deps: RerankerDeps;

  constructor(deps: RerankerDeps) {
    this.#deps = deps;
  }

  async rerank(
    { query, texts, truncate, textTokensMax }: RerankInput,
    watch: Pick<OperationContext<'rerank'>, 'signal' | 'priority' | 'progress'>,
  ) {
    const { vocabulary, contextTokens, context, answersChance } = this.#deps;
    const asked = [...vocabulary.plainTokens(query)];
    const marks = this.#pair([], []).length;
    const pairs = texts.map((text, index) => {
      const read = [...vocabulary.plainTokens(text)].slice(0, textTokensMax);
      const kept = truncateTokens(read, contextTokens - marks - asked.length, truncate);
      if (kept !== undefined) return this.#pair(asked, kept);
      throw new ServiceError(
        'context_length_exceeded',
        contextOverflow(
          contextTokens,
          `the query and text ${index} have ${marks + asked.length + read.length} together`,
        ),
      );
    });
    const answers = await context.read(pairs, watch);
    const scores = Float32Array.from(answers, ([answer = 0]) => (answersChance ? answer : 1 / (1 + Math.exp(-answer))));
    return { scores, tokens: pairs.reduce((sum, pair) => sum + pair.length, 0) } satisfies RerankResult;
  }

  #pair(query: readonly number[], text: readonly number[]): readonly number[] {
    const { template, vocabulary } = this.#deps;
    if (template === undefined) return vocabulary.framedPair(query, text);
    const tokens = template.split(/(\{query\}|\{document\})/).flatMap((piece) => {
      if (piece === '{query}') return query;
      if (piece === '{document}') return text;
      return piece === '' ? [] : [...vocabulary.markupTokens(piece)];
    });
    return vocabulary.framed(tokens);
  }
}
