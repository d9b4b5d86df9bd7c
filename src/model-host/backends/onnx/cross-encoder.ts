import { ServiceError } from '../../../protocol/service-error.ts';
import type { Backend, OperationContext } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import type { RerankInput, RerankResult } from '../../operations/rerank.ts';
import { contextOverflow } from '../context-overflow.ts';
import { truncateTokens } from '../truncate-tokens.ts';
import { unwatched } from '../unwatched.ts';
import { floats } from './onnx-session.ts';
import { TextEncoder } from './text/text-encoder.ts';

/** A model that reads query and text together and answers how well they fit: the chance that they do, 0 to 1. */
export async function loadCrossEncoder(spec: ModelSpec): Promise<Backend> {
  const encoder = await TextEncoder.open<number>(spec, ({ outputs, items }) => {
    const { data, dims } = floats(outputs.logits ?? Object.values(outputs)[0]);
    const labels = dims.length === 1 ? 1 : (dims.at(-1) ?? 0);
    if (labels !== 1 && labels !== 2) throw new Error(`it answers ${labels} labels; a reranker has 1 or 2`);
    return items.map((_, row) => {
      const last = data[(row + 1) * labels - 1] ?? 0;
      return sigmoid(labels === 1 ? last : last - (data[row * labels] ?? 0));
    });
  });
  const { tokenizer, contextTokens, threads } = encoder;

  async function rerank(
    { query, texts, truncate, textTokensMax }: RerankInput,
    context: OperationContext<'rerank'>,
  ): Promise<RerankResult> {
    const asked = tokenizer.plain(query);
    const pairs = texts.map((text, index) => {
      const read = tokenizer.plain(text).slice(0, textTokensMax);
      const kept = truncateTokens(read, contextTokens - tokenizer.marks(2) - asked.length, truncate);
      if (kept !== undefined) return tokenizer.framed(asked, kept);
      const tokens = tokenizer.marks(2) + asked.length + read.length;
      throw new ServiceError(
        'context_length_exceeded',
        contextOverflow(contextTokens, `the query and text ${index} have ${tokens} together`),
      );
    });
    const scores = await encoder.encode(pairs, context);
    return { scores: Float32Array.from(scores), tokens: pairs.reduce((sum, { ids }) => sum + ids.length, 0) };
  }

  const canary = async () => void (await rerank({ query: 'a', texts: ['a'], truncate: 'end' }, unwatched()));
  await canary();
  return {
    info: { contextTokens, threads: { prefill: threads, decode: threads } },
    handlers: { rerank },
    canary,
    close: () => encoder.session.close(),
  };
}

function sigmoid(logit: number): number {
  return 1 / (1 + Math.exp(-logit));
}
