import { join } from 'node:path';
import { Tensor } from 'onnxruntime-node';
import { must } from '../../../lib/assert.ts';
import type { InstalledModel } from '../../../models/installed-model.ts';
import { readFolderJson } from '../../../models/model-folder.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { Backend, OperationContext } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import type { Pixels } from '../../operations/pixels.ts';
import type { Seq2SeqInput, Seq2SeqResult } from '../../operations/seq2seq.ts';
import { integerRows, maskRows, type OnnxSession } from './onnx-session.ts';
import { openProbed } from './probed-session.ts';
import { SequenceDecoder } from './sequence-decoder.ts';
import { TextTokenizer } from './text/text-tokenizer.ts';

interface Seq2SeqModel {
  readonly encoder: OnnxSession;
  readonly decoder: SequenceDecoder;
  readonly tokenizer: TextTokenizer;
  /** Tokens that one source may have, and that one output may have. */
  readonly contextTokens: number;
}

/** The output of the encoder for one source. */
interface Encoded {
  readonly feeds: Readonly<Record<string, Tensor>>;
  readonly tokens: number;
}

/** An encoder that reads a text or an image, and a decoder that writes the likeliest text about it, token by token. */
export async function loadSeq2Seq(spec: ModelSpec): Promise<Backend> {
  const model = must(spec.model, 'a model of two parts is installed');
  const tokenizer = new TextTokenizer(model.directory);
  const contextTokens = model.manifest.context_length ?? 512;
  const pixelSize = sampleEdge(model);
  const { session: encoder, threads } = await openProbed(
    join(model.directory, model.weights),
    spec.settings.threads,
    (opened) => opened.run(sampleOf(opened, tokenizer, pixelSize)),
  );
  const decoder = await SequenceDecoder.open(model, tokenizer, { threads, contextTokens });
  const loaded: Seq2SeqModel = { encoder, decoder, tokenizer, contextTokens };
  const seq2seq = (input: Seq2SeqInput, context: OperationContext<'seq2seq'>) => decodeAll(loaded, input, context);
  return {
    info: { contextTokens, threads: { prefill: threads, decode: threads } },
    handlers: { seq2seq },
    async close() {
      await encoder.close();
      await decoder.close();
    },
  };
}

async function decodeAll(
  model: Seq2SeqModel,
  { sources, prompt, tokensMax }: Seq2SeqInput,
  context: OperationContext<'seq2seq'>,
): Promise<Seq2SeqResult> {
  const texts: string[] = [];
  const truncated: boolean[] = [];
  let promptTokens = 0;
  let completionTokens = 0;
  const begin = prompt === undefined ? [] : [model.tokenizer.idOf(prompt) ?? model.tokenizer.plain(prompt)].flat();
  for (const [index, source] of sources.entries()) {
    const encoded = await encode(model, source, index);
    const start = [...model.decoder.outputTokens.start, ...begin];
    const written = await model.decoder.write(encoded.feeds, start, tokensMax, context);
    texts.push(model.tokenizer.decode(written.tokens));
    truncated.push(written.truncated);
    promptTokens += encoded.tokens;
    completionTokens += written.tokens.length;
  }
  return { texts, truncated, promptTokens, completionTokens };
}

async function encode(model: Seq2SeqModel, source: string | Pixels, index: number): Promise<Encoded> {
  const { encoder, tokenizer, contextTokens } = model;
  const text = typeof source === 'string';
  if (encoder.inputs.includes('pixel_values') === text) {
    throw new ServiceError('model_not_supported', text ? 'this model reads images' : 'this model reads texts');
  }
  if (!text) {
    const { last_hidden_state } = await encoder.run({ pixel_values: pixelTensor(source) }, ['last_hidden_state']);
    const hidden = must(last_hidden_state, 'an encoder answers last_hidden_state');
    return { feeds: { encoder_hidden_states: hidden, encoder_attention_mask: ones(hidden.dims[1] ?? 0) }, tokens: 0 };
  }
  const { ids } = tokenizer.framed(tokenizer.plain(source));
  if (ids.length > contextTokens) {
    throw new ServiceError(
      'context_length_exceeded',
      `input ${index} has ${ids.length} tokens; the model takes ${contextTokens}`,
    );
  }
  const mask = maskRows([ids], ids.length);
  const feeds = { input_ids: integerRows([ids], ids.length, 0), attention_mask: mask };
  const { last_hidden_state } = await encoder.run(feeds, ['last_hidden_state']);
  const hidden = must(last_hidden_state, 'an encoder answers last_hidden_state');
  return { feeds: { encoder_hidden_states: hidden, encoder_attention_mask: mask }, tokens: ids.length };
}

function pixelTensor({ data, width, height }: Pixels): Tensor {
  return new Tensor('float32', data, [1, 3, height, width]);
}

function ones(count: number): Tensor {
  return maskRows([new Int32Array(count)], count);
}

function sampleEdge(model: InstalledModel): number {
  const size = readFolderJson(model.directory, 'preprocessor_config.json')?.size;
  const edge = typeof size === 'object' && size !== null && 'height' in size ? size.height : size;
  return typeof edge === 'number' && edge > 0 && edge <= 4_096 ? edge : 224;
}

function sampleOf(encoder: OnnxSession, tokenizer: TextTokenizer, edge: number): Record<string, Tensor> {
  if (encoder.inputs.includes('pixel_values')) {
    return { pixel_values: pixelTensor({ data: new Float32Array(3 * edge * edge), width: edge, height: edge }) };
  }
  const ids = tokenizer.framed(tokenizer.plain('a')).ids;
  return { input_ids: integerRows([ids], ids.length, 0), attention_mask: maskRows([ids], ids.length) };
}
