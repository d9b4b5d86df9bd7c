import { allOrStop } from '../../lib/concurrency/all-or-stop.ts';
import type { InferenceCall } from '../admission.ts';
import type { CutText } from '../chunking/chunk-cache.ts';
import { type ChunkRequest, chunkByModel } from '../chunking/chunk-text.ts';
import { type Embeddings, type EmbedRequest, embedItems } from '../embeddings/embed-items.ts';
import { type Extracted, type ExtractRequest, extractTexts } from '../extraction/extract-texts.ts';
import { type GenerationOptions, type GenerationOutput, generateChoices, totalOf } from '../generation/generate.ts';
import type { GenerationRequest } from '../generation/generation-request.ts';
import { loadMedia } from '../generation/prompt/load-media.ts';
import type { Inference } from '../inference.ts';
import { type Reranked, type RerankRequest, rerankTexts } from '../reranking/rerank-texts.ts';
import { readImages, transcribeSound } from '../seq2seq/run-seq2seq.ts';
import type { Provider, ReadRequest, TranscribeRequest, WrittenText } from './provider.ts';

/** The models of this server. */
export class OwnProvider implements Provider {
  readonly #inference: Inference;

  constructor(inference: Inference) {
    this.#inference = inference;
  }

  embed(request: EmbedRequest, call: InferenceCall): Promise<Embeddings> {
    return this.#inference.admission.run('embed', call, async () => {
      const value = await embedItems(this.#inference, request, call);
      return { value, items: value.vectors.length, tokens: value.tokens };
    });
  }

  rerank(request: RerankRequest, call: InferenceCall): Promise<Reranked> {
    return this.#inference.admission.run('rerank', call, async () => {
      const value = await rerankTexts(this.#inference, request, call);
      return { value, items: value.scores.length, tokens: value.tokens };
    });
  }

  cut(request: ChunkRequest, call: InferenceCall): Promise<CutText> {
    return this.#inference.admission.run('chunk', call, async () => {
      const value = await chunkByModel(this.#inference, request, call);
      return { value, items: value.chunks.length, tokens: value.tokens };
    });
  }

  read({ model, ...request }: ReadRequest, call: InferenceCall): Promise<readonly WrittenText[]> {
    return this.#inference.admission.run('read', call, async () => {
      const read = await readImages(this.#inference, model, request, call);
      const value = read.texts.map((text, at) => ({ text, truncated: read.truncated[at] === true }));
      return { value, items: value.length, tokens: read.promptTokens + read.completionTokens };
    });
  }

  transcribe({ model, audio, language }: TranscribeRequest, call: InferenceCall): Promise<WrittenText> {
    return this.#inference.admission.run('transcribe', call, async () => {
      const request = { audio, language, translate: false };
      const { text, truncated, tokens } = await transcribeSound(this.#inference, model, request, call);
      return { value: { text, truncated }, items: 1, tokens };
    });
  }

  extract(request: ExtractRequest, call: InferenceCall): Promise<Extracted> {
    return this.#inference.admission.run('extract', call, async () => {
      const value = await extractTexts(this.#inference, request, call);
      return { value, items: request.texts.length, tokens: value.promptTokens + value.completionTokens };
    });
  }

  generate(
    request: GenerationRequest,
    call: InferenceCall & Pick<GenerationOptions, 'onPiece'>,
  ): Promise<readonly GenerationOutput[]> {
    return this.#inference.admission.run('generate', call, async () => {
      await loadMedia(request, this.#inference, call.signal);
      const value = await generateChoices(request, this.#inference, call);
      const usage = totalOf(value);
      return { value, items: value.length, tokens: usage.promptTokens + usage.completionTokens };
    });
  }

  /** The answers to each request in order; what fails ends all of them. */
  generateEach(
    requests: readonly GenerationRequest[],
    call: InferenceCall & Pick<GenerationOptions, 'onPiece'>,
  ): Promise<readonly GenerationOutput[]> {
    return this.#inference.admission.run('generate', call, async () => {
      const one = async (signal: AbortSignal, request: GenerationRequest, at: number) => {
        const before = requests.slice(0, at).reduce((sum, { choices }) => sum + choices, 0);
        const onPiece: GenerationOptions['onPiece'] = (choice, ...piece) => call.onPiece?.(before + choice, ...piece);
        return await generateChoices(request, this.#inference, { ...call, signal, onPiece });
      };
      const answers = await allOrStop(call.signal, (signal) => requests.map((each, at) => one(signal, each, at)));
      const totals = answers.map(totalOf);
      const tokens = totals.reduce((sum, each) => sum + each.promptTokens + each.completionTokens, 0);
      const value = answers.flat();
      return { value, items: value.length, tokens };
    });
  }
}
