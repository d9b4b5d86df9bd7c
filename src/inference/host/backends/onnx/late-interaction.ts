import { must } from '../../../../lib/assert.ts';
import { ServiceError } from '../../../../protocol/service-error.ts';
import { readFolderJson } from '../../../models/model-folder.ts';
import type { Backend, OperationContext } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import type { RerankInput, RerankResult } from '../../operations/rerank.ts';
import { floats } from './onnx-session.ts';
import { normalize } from './pooling.ts';
import { TextEncoder } from './text-encoder.ts';
import { type Encoded, fitted, type TextTokenizer } from './text-tokenizer.ts';

/** Vectors of length one, a row for each token that counts. */
interface TokenVectors {
  readonly data: Float32Array;
  readonly dimension: number;
}

/** How a side is written down, as `config_sentence_transformers.json` of such models has it. */
interface Side {
  /** A token behind the first mark, or text in front where the vocabulary has no such token. */
  readonly mark: readonly number[];
  readonly tokensMax: number;
}

/**
 * A model that answers a vector for every token. The score of a text is the sum, over the tokens of the query, of the
 * greatest product with a token of the text (MaxSim, Khattab and Zaharia 2020).
 */
export async function loadLateInteraction(spec: ModelSpec): Promise<Backend> {
  const model = must(spec.model, 'a reranker is installed');
  const config = readFolderJson(model.directory, 'config_sentence_transformers.json') ?? {};
  const encoder = await TextEncoder.open<TokenVectors>(spec, ({ outputs, items }) => {
    const { data, dims } = floats(Object.values(outputs)[0]);
    const [, width = 0, dimension = 0] = dims;
    if (dims.length !== 3) throw new Error(`its output has ${dims.length} dimensions; vectors of tokens have 3`);
    return items.map(({ length }, row) => {
      const start = row * width * dimension;
      const own = data.slice(start, start + length * dimension);
      for (let token = 0; token < length; token += 1)
        normalize(own.subarray(token * dimension, (token + 1) * dimension));
      return { data: own, dimension };
    });
  });
  const { tokenizer, contextTokens, threads } = encoder;
  const side = (name: 'query' | 'document'): Side => ({
    mark: markOf(tokenizer, config[`${name}_prefix`] ?? model.manifest.prefixes?.[name]),
    tokensMax: Math.min(contextTokens, lengthOf(config[`${name}_length`]) ?? contextTokens),
  });
  const asks = side('query');
  const reads = side('document');
  const skipped = skippedTokens(tokenizer, config.skiplist_words);

  function encoded(text: string, { mark, tokensMax }: Side, what: string, truncate: RerankInput['truncate']): Encoded {
    const plain = tokenizer.plain(text);
    const marks = tokenizer.marks(1) + mark.length;
    const kept = fitted(plain, tokensMax - marks, truncate);
    if (kept === undefined) {
      const tokens = plain.length + marks;
      throw new ServiceError('context_length_exceeded', `${what} has ${tokens} tokens; the model takes ${tokensMax}`);
    }
    return tokenizer.framed([...mark, ...kept]);
  }

  async function rerank(input: RerankInput, context: OperationContext<'rerank'>): Promise<RerankResult> {
    const query = encoded(input.query, asks, 'the query', input.truncate);
    const texts = input.texts.map((text, index) => encoded(text, reads, `text ${index}`, input.truncate));
    const [asked, ...read] = await encoder.encode([query, ...texts], context);
    const wanted = must(asked, 'vectors of the query');
    const scores = read.map((vectors, index) => maxSim(wanted, vectors, must(texts[index], 'a text').ids, skipped));
    const tokens = texts.reduce((sum, { ids }) => sum + ids.length, query.ids.length);
    return { scores: Float32Array.from(scores), tokens };
  }

  const quiet = { signal: new AbortController().signal, emit: () => undefined, progress: () => undefined };
  const canary = async () => void (await rerank({ query: 'a', texts: ['a'], truncate: 'end' }, quiet));
  await canary();
  return {
    info: { contextTokens, threads: { prefill: threads, decode: threads } },
    handlers: { rerank },
    canary,
    close: () => encoder.session.close(),
  };
}

function markOf(tokenizer: TextTokenizer, prefix: unknown): readonly number[] {
  if (typeof prefix !== 'string' || prefix === '') return [];
  const id = tokenizer.idOf(prefix) ?? tokenizer.idOf(prefix.trim());
  return id === undefined ? tokenizer.plain(prefix) : [id];
}

function lengthOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : undefined;
}

/** Tokens of texts that are not compared, such as punctuation. */
function skippedTokens(tokenizer: TextTokenizer, words: unknown): ReadonlySet<number> {
  const known = Array.isArray(words) ? words.filter((word) => typeof word === 'string') : [];
  return new Set(known.map((word) => tokenizer.idOf(word)).filter((id) => id !== undefined));
}

function maxSim(query: TokenVectors, text: TokenVectors, ids: Int32Array, skipped: ReadonlySet<number>): number {
  const { dimension } = query;
  let score = 0;
  for (let asked = 0; asked < query.data.length; asked += dimension) {
    let best = Number.NEGATIVE_INFINITY;
    for (let token = 0; token < ids.length; token += 1) {
      if (skipped.has(ids[token] ?? -1)) continue;
      const at = token * dimension;
      let product = 0;
      for (let column = 0; column < dimension; column += 1) {
        product += (query.data[asked + column] ?? 0) * (text.data[at + column] ?? 0);
      }
      if (product > best) best = product;
    }
    if (best > Number.NEGATIVE_INFINITY) score += best;
  }
  return score;
}
