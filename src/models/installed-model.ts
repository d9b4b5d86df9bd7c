import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelKind } from '../protocol/models/model-kinds.ts';
import type { ModelManifest } from '../protocol/models/model-manifest.ts';
import { type GgufHeader, readGgufHeader } from './headers/gguf-header.ts';
import { type OnnxHeader, readOnnxHeader } from './headers/onnx-header.ts';
import { kvCacheBytesPerToken } from './kv-cache-bytes.ts';
import { ModelFileError } from './model-file-error.ts';
import { readFolderJson, readManifest, variantsOf, weightFiles } from './model-folder.ts';

/** A model whose files have been looked at and can be loaded. */
export interface InstalledModel {
  readonly kind: ModelKind;
  readonly name: string;
  readonly directory: string;
  /** The backend that loads it: `native` is llama.cpp. */
  readonly backend: 'native' | 'onnx';
  /** Path below the directory of the weights that are used. */
  readonly weights: string;
  readonly variant: string;
  /** Paths of files that belong to the weights: what writes behind an encoder, what looks at images beside texts. */
  readonly companions?: { readonly decoder?: string; readonly vision?: string };
  /** Of the weights, companions included. */
  readonly bytes: number;
  readonly parameters: number;
  /** Of a generator: memory for each token of a context, in bytes. */
  readonly kvCacheBytesPerToken?: number;
  /** Seconds since 1970: when the weights were put there. */
  readonly created: number;
  /** The content of the manifest, completed from the files. */
  readonly manifest: ModelManifest & Required<Pick<ModelManifest, 'capabilities' | 'inputs' | 'variants'>>;
  /** Where `context_length` is known from. */
  readonly contextSource: 'manifest' | 'model' | 'unknown';
}

/** Kinds of models that consist of an encoder and a decoder. */
const twoPartKinds: readonly ModelKind[] = ['rewriters', 'readers', 'transcribers'];
const lengthMax = 16_777_216;

/** Reads and checks the files of one model. Throws `ModelFileError` with the reason why it cannot be served. */
export function describeModel(kind: ModelKind, name: string, directory: string): InstalledModel {
  const given = readManifest(directory);
  if (given.kind !== undefined && given.kind !== kind) {
    throw new ModelFileError(`its manifest says ${given.kind}, but it lies among the ${kind}`);
  }
  const variants = given.variants ?? variantsOf(mainFiles(kind, weightFiles(directory)));
  const variant = ['i8', 'full'].find((each) => variants[each] !== undefined) ?? Object.keys(variants)[0];
  const weights = variant === undefined ? undefined : variants[variant];
  if (variant === undefined || weights === undefined) {
    throw new ModelFileError('it has no weights: no .gguf or .onnx file in the directory or in onnx/');
  }
  const path = join(directory, weights);
  const native = weights.endsWith('.gguf');
  const gguf = native ? readGgufHeader(path) : undefined;
  const onnx = native ? undefined : readOnnxHeader(path);
  for (const other of Object.values(variants)) if (other !== weights) checkHeader(join(directory, other));
  const companions = companionsOf(weights, directory);
  for (const other of Object.values(companions)) checkHeader(join(directory, other));
  const found = gguf !== undefined ? fromGguf(kind, gguf) : onnx === undefined ? {} : fromOnnx(kind, onnx, directory);
  const stat = statSync(path);
  const capabilities = [...new Set([...(found.capabilities ?? []), ...(given.capabilities ?? [])])];
  const manifest = { inputs: ['text' as const], ...found, ...given, capabilities, kind, variants };
  if (companions.vision !== undefined && given.inputs === undefined) manifest.inputs = [...manifest.inputs, 'image'];
  return {
    kind,
    name,
    directory,
    backend: native ? 'native' : 'onnx',
    weights,
    variant,
    companions,
    bytes: Object.values(companions).reduce((sum, file) => sum + statSync(join(directory, file)).size, stat.size),
    parameters: gguf?.parameters ?? onnx?.parameters ?? 0,
    ...(gguf !== undefined && kind === 'generators' ? { kvCacheBytesPerToken: kvCacheBytesPerToken(gguf) } : {}),
    created: createdAt(stat),
    manifest,
    contextSource:
      given.context_length !== undefined ? 'manifest' : manifest.context_length !== undefined ? 'model' : 'unknown',
  };
}

/** Seconds since 1970. */
export function createdAt({ mtimeMs }: { readonly mtimeMs: number }): number {
  return Math.floor(mtimeMs / 1_000);
}

function mainFiles(kind: ModelKind, files: readonly string[]): readonly string[] {
  const first = twoPartKinds.includes(kind) ? /(?:^|\/)encoder_model[^/]*\.onnx$/ : /(?:^|\/)text_model[^/]*\.onnx$/;
  const mains = files.filter((file) => first.test(file));
  return mains.length > 0 ? mains : files;
}

function companionsOf(weights: string, directory: string): NonNullable<InstalledModel['companions']> {
  const beside = (part: string, other: string) => {
    const path = weights.replace(new RegExp(`(^|/)${part}(?=[^/]*\\.onnx$)`), `$1${other}`);
    return path !== weights && existsSync(join(directory, path)) ? path : undefined;
  };
  const decoder = beside('encoder_model', 'decoder_model');
  if (decoder === undefined && /(?:^|\/)encoder_model[^/]*\.onnx$/.test(weights)) {
    throw new ModelFileError('it has an encoder, but no decoder_model.onnx that takes a whole text at once beside it');
  }
  const vision = beside('text_model', 'vision_model');
  return { ...optional('decoder', decoder), ...optional('vision', vision) };
}

function checkHeader(path: string): void {
  if (path.endsWith('.gguf')) readGgufHeader(path);
  else readOnnxHeader(path);
}

function fromGguf(kind: ModelKind, header: GgufHeader): ModelManifest {
  const architecture = header.values.get('general.architecture');
  if (typeof architecture !== 'string') throw new ModelFileError('its GGUF file does not name its architecture');
  if (header.tensors === 0) throw new ModelFileError('its GGUF file has no weights');
  const own = (key: string) => header.values.get(`${architecture}.${key}`);
  const template = header.values.get('tokenizer.chat_template');
  const embedding = kind === 'embedders' ? positive(own('embedding_length')) : undefined;
  const pooling = (['none', 'mean', 'cls', 'last'] as const)[Number(own('pooling_type') ?? -1)];
  const license = header.values.get('general.license');
  return {
    ...optional('context_length', positive(own('context_length'))),
    ...optional('dimension', embedding),
    ...optional('pooling', kind === 'embedders' ? pooling : undefined),
    ...optional('license', typeof license === 'string' ? license : undefined),
    ...optional('chat_template', kind === 'generators' && typeof template === 'string' ? template : undefined),
    capabilities: kind === 'generators' ? generatorCapabilities(template) : [],
  };
}

/** Calls and schemas are held to grammars, so that any generator can be asked for them; thoughts come from its training. */
function generatorCapabilities(template: unknown): string[] {
  const thinks = typeof template === 'string' && /enable_thinking|<think>/.test(template);
  return ['tools', 'structured_output', ...(thinks ? ['reasoning'] : [])];
}

function fromOnnx(kind: ModelKind, header: OnnxHeader, directory: string): ModelManifest {
  const output = header.outputs[0];
  if (output === undefined || output.kind !== 'tensor') throw new ModelFileError('its first output is not a tensor');
  const readsTokens = header.inputs.some(({ name }) => name === 'input_ids');
  if (readsTokens && !existsSync(join(directory, 'tokenizer.json'))) {
    throw new ModelFileError('it reads tokens, but has no tokenizer.json');
  }
  const config = readFolderJson(directory, 'config.json') ?? {};
  const architecture = Array.isArray(config.architectures) ? String(config.architectures[0]) : '';
  const sparse = kind === 'embedders' && /ForMaskedLM$|Splade/i.test(architecture);
  const late = kind === 'rerankers' && /colbert/i.test(architecture);
  const last = output.shape.at(-1);
  return {
    ...optional('context_length', contextOf(directory, config)),
    ...(kind === 'embedders' && typeof last === 'number' ? { dimension: last } : {}),
    ...(kind === 'embedders' && !sparse ? poolingOf(directory, output.shape.length) : {}),
    capabilities: sparse ? ['sparse'] : late ? ['late_interaction'] : [],
    inputs: inputsOf(header),
  };
}

/** The length that the model was made to read, which the tokenizer may bound further. */
function contextOf(directory: string, config: Record<string, unknown>): number | undefined {
  const trained = positive(readFolderJson(directory, 'sentence_bert_config.json')?.max_seq_length);
  if (trained !== undefined) return trained;
  const places = positive(config.max_position_embeddings);
  // Models of this family count positions from two.
  const offset = /roberta|mpnet/.test(String(config.model_type)) ? 2 : 0;
  const bound = positive(readFolderJson(directory, 'tokenizer_config.json')?.model_max_length);
  const known = [...(places === undefined ? [] : [places - offset]), ...(bound === undefined ? [] : [bound])];
  return known.length === 0 ? undefined : Math.min(...known);
}

function inputsOf(header: OnnxHeader): ('text' | 'image' | 'audio')[] {
  const reads = (name: string) => header.inputs.some((input) => input.name === name);
  const kinds = [
    ...(reads('input_ids') ? (['text'] as const) : []),
    ...(reads('pixel_values') ? (['image'] as const) : []),
    ...(reads('input_features') || reads('input_values') ? (['audio'] as const) : []),
  ];
  return kinds.length > 0 ? kinds : ['text'];
}

/** As sentence-transformers keeps it; without that, token vectors are averaged. */
function poolingOf(directory: string, rank: number): ModelManifest {
  const prompts = readFolderJson(directory, 'config_sentence_transformers.json')?.prompts;
  const named = typeof prompts === 'object' && prompts !== null ? Object.entries(prompts) : [];
  const prefixes = Object.fromEntries(
    named.filter((pair): pair is [string, string] => typeof pair[1] === 'string' && pair[1] !== ''),
  );
  const config = readFolderJson(directory, '1_Pooling/config.json') ?? {};
  const pooling = rank < 3 ? 'none' : config.pooling_mode_cls_token === true ? 'cls' : 'mean';
  return { pooling, normalize: true, ...(Object.keys(prefixes).length > 0 ? { prefixes } : {}) };
}

function positive(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= lengthMax ? value : undefined;
}

function optional<Key extends string, T>(key: Key, value: T | undefined): { [K in Key]?: T } {
  return value === undefined ? {} : ({ [key]: value } as { [K in Key]?: T });
}
