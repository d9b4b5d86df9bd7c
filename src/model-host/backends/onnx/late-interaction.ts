import { must } from '../../../lib/assert.ts';
import { readFolderJson } from '../../../models/model-folder.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { Backend, OperationContext } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import type { Pixels } from '../../operations/pixels.ts';
import type { RerankInput, RerankResult } from '../../operations/rerank.ts';
import { contextOverflow } from '../context-overflow.ts';
import { truncateTokens } from '../truncate-tokens.ts';
import { unwatched } from '../unwatched.ts';
import { ImageEncoder } from './image-encoder.ts';
import { floats } from './onnx-session.ts';
import { normalize } from './text/pooling.ts';
import { TextEncoder } from './text/text-encoder.ts';
import type { Encoded, TextTokenizer } from './text/text-tokenizer.ts';

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
  const vision = await ImageEncoder.open(model, threads);
  const side = (name: 'query' | 'document'): Side => ({
    mark: markOf(tokenizer, config[`${name}_prefix`] ?? model.manifest.prefixes?.[name]),
    tokensMax: Math.min(contextTokens, lengthOf(config[`${name}_length`]) ?? contextTokens),
  });
  const asks = side('query');
  const reads = side('document');
  const expansion = expansionOf(config, tokenizer, asks.tokensMax);
  const skipped = skippedTokens(tokenizer, config.skiplist_words);

  function encoded(
    plain: readonly number[],
    { mark, tokensMax }: Side,
    what: string,
    truncate: RerankInput['truncate'],
  ): Encoded {
    const marks = tokenizer.marks(1) + mark.length;
    const kept = truncateTokens(plain, tokensMax - marks, truncate);
    if (kept === undefined) {
      const tokens = plain.length + marks;
      throw new ServiceError('context_length_exceeded', contextOverflow(tokensMax, `${what} has ${tokens}`));
    }
    return tokenizer.framed([...mark, ...kept]);
  }

  async function rerank(input: RerankInput, context: OperationContext<'rerank'>): Promise<RerankResult> {
    const query = expanded(encoded(tokenizer.plain(input.query), asks, 'the query', input.truncate), expansion);
    const seen = await imagesOf(vision, input.images ?? [], context);
    const texts = input.texts.map((text, index) =>
      encoded(tokenizer.plain(text).slice(0, input.textTokensMax), reads, `text ${index}`, input.truncate),
    );
    const [asked, ...read] = await encoder.encode([query, ...texts], context);
    const wanted = must(asked, 'vectors of the query');
    const scores = read.map((vectors, index) => {
      const images = seen[index] ?? [];
      const { ids } = must(texts[index], 'a text');
      // A page without words is its image alone, not what is put around words.
      const bare = input.texts[index] === '' && images.length > 0;
      const best = bare ? noMatches(wanted) : bestMatches(wanted, vectors, (token) => !skipped.has(ids[token] ?? -1));
      for (const image of images)
        raise(
          best,
          bestMatches(wanted, image, () => true),
        );
      return best.reduce((sum, each) => sum + (each === Number.NEGATIVE_INFINITY ? 0 : each), 0);
    });
    const tokens = texts.reduce((sum, { ids }) => sum + ids.length, query.ids.length);
    return { scores: Float32Array.from(scores), tokens };
  }

  const canary = async () => void (await rerank({ query: 'a', texts: ['a'], truncate: 'end' }, unwatched()));
  await canary();
  return {
    info: { contextTokens, threads: { prefill: threads, decode: threads } },
    handlers: { rerank },
    canary,
    async close() {
      await encoder.session.close();
      await vision?.close();
    },
  };
}

/** Mask tokens that fill a query up: their vectors count like those of words that were not said. */
interface Expansion {
  readonly mask: number;
  readonly length: number;
  /** Whether what was said looks at them. */
  readonly attended: boolean;
}

function expansionOf(
  config: Readonly<Record<string, unknown>>,
  tokenizer: TextTokenizer,
  length: number,
): Expansion | undefined {
  const mask = tokenizer.idOf('[MASK]') ?? tokenizer.idOf('<mask>');
  if (config.do_query_expansion !== true || config.query_length === undefined || mask === undefined) return undefined;
  return { mask, length, attended: config.attend_to_expansion_tokens === true };
}

function expanded(query: Encoded, expansion: Expansion | undefined): Encoded {
  if (expansion === undefined || query.ids.length >= expansion.length) return query;
  const ids = new Int32Array(expansion.length).fill(expansion.mask);
  ids.set(query.ids);
  const types = new Int32Array(expansion.length);
  types.set(query.types);
  return { ids, types, attended: expansion.attended ? ids.length : query.ids.length };
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

/** Vectors of the patches of all images, by the text that they stand beside. */
async function imagesOf(
  vision: ImageEncoder | undefined,
  images: readonly (readonly Pixels[])[],
  context: OperationContext<'rerank'>,
): Promise<TokenVectors[][]> {
  const all = images.flat();
  if (all.length === 0) return [];
  if (vision === undefined) throw new ServiceError('model_not_supported', 'this model reads text only');
  const outputs = await vision.encode(all, context);
  const vectors = outputs.map(({ data, dims }) => {
    const dimension = dims.at(-1) ?? 0;
    const own = data.slice();
    for (let at = 0; at < own.length; at += dimension) normalize(own.subarray(at, at + dimension));
    return { data: own, dimension };
  });
  let next = 0;
  return images.map((group) => {
    next += group.length;
    return vectors.slice(next - group.length, next);
  });
}

function noMatches({ data, dimension }: TokenVectors): Float32Array {
  return new Float32Array(data.length / dimension).fill(Number.NEGATIVE_INFINITY);
}

/** For each vector of the query the greatest product with one of those that count. */
function bestMatches(query: TokenVectors, other: TokenVectors, counts: (row: number) => boolean): Float32Array {
  const { dimension } = query;
  const best = noMatches(query);
  for (let row = 0; row * dimension < other.data.length; row += 1) {
    if (!counts(row)) continue;
    const at = row * dimension;
    for (let asked = 0; asked < best.length; asked += 1) {
      let product = 0;
      for (let column = 0; column < dimension; column += 1) {
        product += (query.data[asked * dimension + column] ?? 0) * (other.data[at + column] ?? 0);
      }
      best[asked] = Math.max(best[asked] ?? 0, product);
    }
  }
  return best;
}

function raise(best: Float32Array, others: Float32Array): void {
  for (let at = 0; at < best.length; at += 1) best[at] = Math.max(best[at] ?? 0, others[at] ?? 0);
}
