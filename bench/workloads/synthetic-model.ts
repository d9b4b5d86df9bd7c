import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from './document-file.ts';
import { Xorshift32 } from './xorshift32.ts';

/** Shape of a Llama model; its weights are random, so that it is as fast as a real one and as wise as a die. */
export interface ModelShape {
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyHeads: number;
  readonly feedForward: number;
  readonly vocabulary: number;
}

export const modelShapes = {
  '135M': { width: 576, layers: 30, heads: 9, keyHeads: 3, feedForward: 1_536, vocabulary: 49_152 },
  '0.4B': { width: 960, layers: 32, heads: 15, keyHeads: 5, feedForward: 2_560, vocabulary: 49_152 },
  // Rows of a multiple of 256 weights, which `Q4_K` needs.
  '0.1B': { width: 768, layers: 16, heads: 12, keyHeads: 4, feedForward: 2_048, vocabulary: 32_000 },
  '1.0B': { width: 2_048, layers: 16, heads: 32, keyHeads: 8, feedForward: 8_192, vocabulary: 32_000 },
  '7.1B': { width: 4_096, layers: 32, heads: 32, keyHeads: 8, feedForward: 14_336, vocabulary: 32_000 },
} as const;
export type ShapeName = keyof typeof modelShapes;

const contextTokens = 4_096;
/** ggml's number of the type of what is no matrix. */
const plain = 0;
/** ggml's number of a type; the weights and bytes of a block, and the numbers of sixteen bits that it begins with. */
const weightTypes = {
  Q4_0: { type: 2, blockWeights: 32, blockBytes: 18, scales: 1 },
  Q4_1: { type: 3, blockWeights: 32, blockBytes: 20, scales: 2 },
  Q8_0: { type: 8, blockWeights: 32, blockBytes: 34, scales: 1 },
  Q4_K: { type: 12, blockWeights: 256, blockBytes: 144, scales: 2 },
} as const;
export type WeightType = keyof typeof weightTypes;
const alignment = 32;
/** Weights are written from pieces of this many random blocks. */
const pieceBlocks = 65_536;

interface Tensor {
  readonly name: string;
  readonly shape: readonly number[];
}

/** Path of a GGUF file with the shape, its matrices of one type, made when missing. */
export async function syntheticModel(name: ShapeName, weights: WeightType = 'Q4_0'): Promise<string> {
  const path = join(cacheDirectory, `synthetic-v1-${name}${weights === 'Q4_0' ? '' : `-${weights}`}.gguf`);
  if (existsSync(path)) return path;
  mkdirSync(cacheDirectory, { recursive: true });
  const shape = modelShapes[name];
  const tensors = tensorsOf(shape);
  const writer = Bun.file(`${path}.part`).writer({ highWaterMark: 16 << 20 });
  const header = headerOf(shape, tensors, weights);
  writer.write(header);
  const piece = randomBlocks(weights);
  for (const tensor of tensors) {
    const bytes = bytesOf(tensor, weights);
    if (tensor.shape.length === 1) writer.write(new Uint8Array(new Float32Array(tensor.shape[0] ?? 0).fill(1).buffer));
    else
      for (let at = 0; at < bytes; at += piece.length)
        writer.write(piece.subarray(0, Math.min(piece.length, bytes - at)));
    writer.write(new Uint8Array(padding(bytes)));
    await writer.flush();
  }
  await writer.end();
  renameSync(`${path}.part`, path);
  return path;
}

function tensorsOf({ width, layers, heads, keyHeads, feedForward, vocabulary }: ModelShape): Tensor[] {
  const keyWidth = (width / heads) * keyHeads;
  const block = (layer: number): Tensor[] => [
    { name: `blk.${layer}.attn_norm.weight`, shape: [width] },
    { name: `blk.${layer}.attn_q.weight`, shape: [width, width] },
    { name: `blk.${layer}.attn_k.weight`, shape: [width, keyWidth] },
    { name: `blk.${layer}.attn_v.weight`, shape: [width, keyWidth] },
    { name: `blk.${layer}.attn_output.weight`, shape: [width, width] },
    { name: `blk.${layer}.ffn_norm.weight`, shape: [width] },
    { name: `blk.${layer}.ffn_gate.weight`, shape: [width, feedForward] },
    { name: `blk.${layer}.ffn_up.weight`, shape: [width, feedForward] },
    { name: `blk.${layer}.ffn_down.weight`, shape: [feedForward, width] },
  ];
  return [
    { name: 'token_embd.weight', shape: [width, vocabulary] },
    { name: 'output_norm.weight', shape: [width] },
    ...Array.from({ length: layers }, (_, layer) => block(layer)).flat(),
  ];
}

function bytesOf({ shape }: Tensor, type: WeightType): number {
  const { blockWeights, blockBytes } = weightTypes[type];
  const weights = shape.reduce((product, size) => product * size, 1);
  return shape.length === 1 ? weights * 4 : (weights / blockWeights) * blockBytes;
}

function padding(bytes: number): number {
  return (alignment - (bytes % alignment)) % alignment;
}

/** Blocks of small scales and random weights. */
function randomBlocks(type: WeightType): Uint8Array {
  const { blockBytes, scales } = weightTypes[type];
  const random = new Xorshift32(42);
  const bytes = new Uint8Array(pieceBlocks * blockBytes);
  const words = new Uint32Array(bytes.buffer);
  for (let at = 0; at < words.length; at += 1) words[at] = random.next();
  const view = new DataView(bytes.buffer);
  for (let block = 0; block < pieceBlocks; block += 1) {
    for (let scale = 0; scale < scales; scale += 1) view.setUint16(block * blockBytes + 2 * scale, 0x1d1f, true);
  }
  return bytes;
}

function headerOf(shape: ModelShape, tensors: readonly Tensor[], weights: WeightType): Uint8Array {
  const entries: Uint8Array[] = [];
  const text = (key: string, value: string) => entries.push(stringBytes(key), u32(8), stringBytes(value));
  const number = (key: string, value: number) => entries.push(stringBytes(key), u32(4), u32(value));
  const decimal = (key: string, value: number) =>
    entries.push(stringBytes(key), u32(6), new Uint8Array(Float32Array.of(value).buffer));
  const texts = (key: string, values: readonly string[]) =>
    entries.push(stringBytes(key), u32(9), u32(8), u64(values.length), ...values.map(stringBytes));
  const numbers = (key: string, values: readonly number[]) =>
    entries.push(stringBytes(key), u32(9), u32(5), u64(values.length), new Uint8Array(Int32Array.from(values).buffer));
  text('general.architecture', 'llama');
  number('llama.context_length', contextTokens);
  number('llama.embedding_length', shape.width);
  number('llama.block_count', shape.layers);
  number('llama.feed_forward_length', shape.feedForward);
  number('llama.attention.head_count', shape.heads);
  number('llama.attention.head_count_kv', shape.keyHeads);
  decimal('llama.attention.layer_norm_rms_epsilon', 1e-5);
  number('llama.rope.dimension_count', shape.width / shape.heads);
  number('llama.vocab_size', shape.vocabulary);
  text('tokenizer.ggml.model', 'gpt2');
  text('tokenizer.ggml.pre', 'gpt-2');
  const tokens = Array.from({ length: shape.vocabulary }, (_, token) => wordOf(token));
  texts('tokenizer.ggml.tokens', [...tokens.slice(0, -1), '<|end|>']);
  numbers('tokenizer.ggml.token_type', [...tokens.slice(0, -1).map(() => 1), 3]);
  texts('tokenizer.ggml.merges', ['a b']);
  number('tokenizer.ggml.bos_token_id', shape.vocabulary - 1);
  number('tokenizer.ggml.eos_token_id', shape.vocabulary - 1);
  const entryCount = 17;
  let offset = 0;
  const infos = tensors.map((tensor) => {
    const at = offset;
    const bytes = bytesOf(tensor, weights);
    offset += bytes + padding(bytes);
    const kind = tensor.shape.length === 1 ? plain : weightTypes[weights].type;
    return [stringBytes(tensor.name), u32(tensor.shape.length), ...tensor.shape.map(u64), u32(kind), u64(at)];
  });
  const head = [new TextEncoder().encode('GGUF'), u32(3), u64(tensors.length), u64(entryCount)];
  const bytes = Buffer.concat([...head, ...entries, ...infos.flat()]);
  return Buffer.concat([bytes, new Uint8Array(padding(bytes.length))]);
}

/** The letters of byte-level BPE for the first tokens, then words. */
function wordOf(token: number): string {
  return token < 94 ? String.fromCharCode(33 + token) : token === 94 ? '\u0120' : `\u0120word${token}`;
}

function u32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

function u64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}

function stringBytes(value: string): Uint8Array {
  const bytes = new TextEncoder().encode(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}
