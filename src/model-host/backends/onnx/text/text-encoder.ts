import { join } from 'node:path';
import type { Tensor } from 'onnxruntime-node';
import { must } from '../../../../lib/assert.ts';
import type { InstalledModel } from '../../../../models/installed-model.ts';
import type { ModelSpec } from '../../../model-spec.ts';
import { integerRows, maskRows, type OnnxSession } from '../onnx-session.ts';
import { openProbed } from '../probed-session.ts';
import { BatchQueue, type QueueContext } from './batch-queue.ts';
import { type Encoded, TextTokenizer } from './text-tokenizer.ts';

/** Tokens of one run, filling included: what one has to wait for before a request can leave or another one join. */
const batchTokensMax = 512;
const sampleRows = 4;
const sampleTokens = 32;

/** The output of the model for one batch. */
export interface EncodedBatch {
  readonly outputs: Awaited<ReturnType<OnnxSession['run']>>;
  readonly items: readonly QueuedText[];
  /** Tokens of the longest, to which the others were filled up. */
  readonly width: number;
}

interface QueuedText extends Encoded {
  readonly length: number;
}

/** A model that reads tokens of texts, many texts at a time: embedders, rerankers, taggers. */
export class TextEncoder<Output> {
  readonly model: InstalledModel;
  readonly tokenizer: TextTokenizer;
  readonly contextTokens: number;
  readonly threads: number;
  readonly session: OnnxSession;
  readonly #queue: BatchQueue<QueuedText, Output>;

  private constructor(parts: {
    model: InstalledModel;
    tokenizer: TextTokenizer;
    contextTokens: number;
    threads: number;
    session: OnnxSession;
    read: (batch: EncodedBatch) => Output[];
  }) {
    this.model = parts.model;
    this.tokenizer = parts.tokenizer;
    this.contextTokens = parts.contextTokens;
    this.threads = parts.threads;
    this.session = parts.session;
    // Without a mask nothing may be filled up, so that every text is read alone.
    const tokensMax = parts.session.inputs.includes('attention_mask') ? batchTokensMax : 0;
    this.#queue = new BatchQueue(tokensMax, async (items) => {
      const batch = await runBatch(parts.session, parts.tokenizer.padId, items);
      return parts.read(batch);
    });
  }

  /** Opens the model of `spec`; `read` turns what it says to a batch into one output for each text. */
  static async open<Output>(spec: ModelSpec, read: (batch: EncodedBatch) => Output[]): Promise<TextEncoder<Output>> {
    const model = must(spec.model, 'a model of this backend is installed');
    const tokenizer = new TextTokenizer(model.directory);
    const contextTokens = model.manifest.context_length ?? spec.settings.contextTokensMax;
    const sample = sampleOf(tokenizer, Math.min(sampleTokens, contextTokens));
    const { session, threads } = await openProbed(
      join(model.directory, model.weights),
      spec.settings.threads,
      (opened) => runBatch(opened, tokenizer.padId, sample),
    );
    return new TextEncoder({ model, tokenizer, contextTokens, threads, session, read });
  }

  /** One output for each text, in their order. */
  encode(texts: readonly Encoded[], context: QueueContext): Promise<Output[]> {
    return this.#queue.submit(
      texts.map((text) => ({ ...text, length: text.ids.length })),
      context,
    );
  }
}

async function runBatch(session: OnnxSession, padId: number, items: readonly QueuedText[]): Promise<EncodedBatch> {
  const width = items.reduce((most, { length }) => Math.max(most, length), 0);
  const ids = items.map((item) => item.ids);
  const makers: Readonly<Record<string, () => Tensor>> = {
    input_ids: () => integerRows(ids, width, padId),
    attention_mask: () =>
      maskRows(
        items.map(({ attended, length }) => ({ length: attended ?? length })),
        width,
      ),
    token_type_ids: () =>
      integerRows(
        items.map(({ types }) => types),
        width,
        0,
      ),
    position_ids: () =>
      integerRows(
        ids.map((each) => Int32Array.from(each.keys())),
        width,
        0,
      ),
  };
  const feeds = Object.fromEntries(
    session.inputs.map((name) => {
      const make = makers[name];
      if (make === undefined) throw new Error(`it reads "${name}", which is not made from a text`);
      return [name, make()];
    }),
  );
  return { outputs: await session.run(feeds), items, width };
}

function sampleOf(tokenizer: TextTokenizer, tokens: number): QueuedText[] {
  const ids = Int32Array.from({ length: tokens }, (_, at) => (at * 31) % tokenizer.vocabularySize);
  return Array.from({ length: sampleRows }, () => ({ ids, types: new Int32Array(tokens), length: tokens }));
}
