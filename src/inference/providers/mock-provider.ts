import { ServiceError } from '../../protocol/service-error.ts';
import type { Embeddings, EmbedItem, EmbedRequest, SparseVector } from '../embeddings/embed-items.ts';
import type { GenerationOutput } from '../generation/generate.ts';
import type { GenerationRequest } from '../generation/generation-request.ts';
import type { Reranked, RerankRequest } from '../reranking/rerank-texts.ts';
import type { Provider } from './provider.ts';
import { plainOutput } from './remote/remote-output.ts';

const usualDimension = 64;

/**
 * A provider without a model, for tests. A vector counts the words of its text, each in the place that its hash names, so
 * texts that share words are near; it is the same in every process. A model whose name begins with "sparse" makes sparse
 * vectors: a word is the index that its hash names. An answer repeats what was asked.
 */
export class MockProvider implements Provider {
  embed({ model, items, dimensions = usualDimension, keepGoing = false }: EmbedRequest): Promise<Embeddings> {
    const faults: { index: number; error: ServiceError }[] = [];
    const vectorOf = model.startsWith('sparse') ? sparseVector : (words: string[]) => wordVector(words, dimensions);
    let tokens = 0;
    const vectors = items.map((item, index) => {
      const words = wordsOf(item);
      tokens += words.length;
      if (words.length > 0) return vectorOf(words);
      const error =
        item instanceof ServiceError ? item : new ServiceError('invalid_request', `input ${index} has no words`);
      if (!keepGoing) throw error;
      faults.push({ index, error });
      return undefined;
    });
    return Promise.resolve({ model, dimension: dimensions, vectors, tokens, faults });
  }

  /** The part of the query's words that a text has. */
  async rerank({ model, query, texts, images }: RerankRequest): Promise<Reranked> {
    if (images) throw new ServiceError('model_not_supported', 'the provider "mock" reranks texts, not images');
    const wanted = new Set(wordsOf(query));
    const score = (text: string) => new Set(wordsOf(text)).intersection(wanted).size / Math.max(1, wanted.size);
    return { model, scores: Float32Array.from(texts, score), tokens: wanted.size };
  }

  generate({ messages }: GenerationRequest): Promise<readonly GenerationOutput[]> {
    const text = messages.at(-1)?.content ?? '';
    const tokens = wordsOf(text).length;
    return Promise.resolve([plainOutput(text, { promptTokens: tokens, cachedTokens: 0, completionTokens: tokens })]);
  }
}

function wordsOf(item: EmbedItem): string[] {
  return typeof item === 'string' ? (item.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) : [];
}

function wordVector(words: readonly string[], dimension: number): Float32Array {
  const vector = new Float32Array(dimension);
  for (const word of words) {
    const place = Bun.hash.xxHash32(word) % dimension;
    vector[place] = (vector[place] ?? 0) + 1;
  }
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

function sparseVector(words: readonly string[]): SparseVector {
  const counts = new Map<number, number>();
  for (const word of words) {
    const index = Bun.hash.xxHash32(word);
    counts.set(index, (counts.get(index) ?? 0) + 1);
  }
  const entries = [...counts].sort(([one], [other]) => one - other);
  return {
    indices: Uint32Array.from(entries, ([index]) => index),
    values: Float32Array.from(entries, ([, count]) => count),
  };
}
