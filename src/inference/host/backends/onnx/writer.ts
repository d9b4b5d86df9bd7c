import { join } from 'node:path';
import { Tensor } from 'onnxruntime-node';
import { must } from '../../../../lib/assert.ts';
import { ServiceError } from '../../../../protocol/service-error.ts';
import type { InstalledModel } from '../../../models/describe-model.ts';
import { readFolderJson } from '../../../models/model-folder.ts';
import type { Backend, OperationContext } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import type { Pixels } from '../../operations/pixels.ts';
import type { WriteTextInput, WriteTextResult } from '../../operations/write-text.ts';
import { integerRows, maskRows, type OnnxSession } from './onnx-session.ts';
import { openProbed } from './probed-session.ts';
import { TextDecoder } from './text-decoder.ts';
import { TextTokenizer } from './text-tokenizer.ts';

interface Writer {
  readonly encoder: OnnxSession;
  readonly decoder: TextDecoder;
  readonly tokenizer: TextTokenizer;
  /** Tokens that one source may have, and that one output may have. */
  readonly contextTokens: number;
}

/** What the encoder made of one source. */
interface Encoded {
  readonly feeds: Readonly<Record<string, Tensor>>;
  readonly tokens: number;
}

/** An encoder that reads a text or an image, and a decoder that writes the likeliest text about it, token by token. */
export async function loadWriter(spec: ModelSpec): Promise<Backend> {
  const model = must(spec.model, 'a model of two parts is installed');
  const tokenizer = new TextTokenizer(model.directory);
  const contextTokens = model.manifest.context_length ?? 512;
  const pixelSize = sampleEdge(model);
  const { session: encoder, threads } = await openProbed(
    join(model.directory, model.weights),
    spec.settings.threads,
    (opened) => opened.run(sampleOf(opened, tokenizer, pixelSize)),
  );
  const decoder = await TextDecoder.open(model, tokenizer, { threads, contextTokens });
  const writer: Writer = { encoder, decoder, tokenizer, contextTokens };
  const writeText = (input: WriteTextInput, context: OperationContext<'writeText'>) =>
    writeTexts(writer, input, context);
  return {
    info: { contextTokens, threads: { prefill: threads, decode: threads } },
    handlers: { writeText },
    async close() {
      await encoder.close();
      await decoder.close();
    },
  };
}

async function writeTexts(
  writer: Writer,
  { sources, prompt, tokensMax }: WriteTextInput,
  context: OperationContext<'writeText'>,
): Promise<WriteTextResult> {
  const texts: string[] = [];
  let promptTokens = 0;
  let completionTokens = 0;
  const begin = prompt === undefined ? [] : [writer.tokenizer.idOf(prompt) ?? writer.tokenizer.plain(prompt)].flat();
  for (const [index, source] of sources.entries()) {
    const encoded = await encode(writer, source, index);
    const start = [...writer.decoder.writing.start, ...begin];
    const written = await writer.decoder.write(encoded.feeds, start, tokensMax, context);
    texts.push(writer.tokenizer.decode(written));
    promptTokens += encoded.tokens;
    completionTokens += written.length;
  }
  return { texts, promptTokens, completionTokens };
}

async function encode(writer: Writer, source: string | Pixels, index: number): Promise<Encoded> {
  const { encoder, tokenizer, contextTokens } = writer;
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

export function pixelTensor({ data, width, height }: Pixels): Tensor {
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
