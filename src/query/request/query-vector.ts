import { vectorBounds } from '../../engine/vector-bounds.ts';
import type { VectorIndexDefinition } from '../../index-kinds/all-kinds.ts';
import type { DenseDefinition } from '../../index-kinds/dense.ts';
import type { SparseDefinition } from '../../index-kinds/sparse.ts';
import type { SparseVector } from '../../inference/embeddings/embed-items.ts';
import { base64Bytes, decodeBase64Into } from '../../lib/text/base64.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { checkMembers, invalidQuery, isObject, type Members, member } from '../nodes/query-members.ts';

const denseForms = 'an array of numbers, or base64 of little-endian float32 values';
const sparseForms = '{"indices", "values"}, {"packed_indices", "packed_values"}, or an object of token -> weight';

/** The bytes of a query vector, as the engine reads it for this index. Fails with `invalid_query` naming `where`. */
export function readQueryVector(value: unknown, index: VectorIndexDefinition, where: string): Uint8Array {
  return index.kind === 'dense' ? readDenseVector(value, index, where) : readSparseVector(value, index, where);
}

/** The same for a vector that the embedder of the index has made. Fails with `invalid_query` where it does not fit the index. */
export function bytesOfEmbedding(
  vector: Float32Array | SparseVector,
  index: VectorIndexDefinition,
  where: string,
): Uint8Array {
  if (index.kind === 'dense' && vector instanceof Float32Array)
    return denseBytes(Float32Array.from(vector), index, where);
  if (index.kind === 'sparse' && !(vector instanceof Float32Array)) {
    return sparseBytes(vector.indices, vector.values, where);
  }
  throw invalidQuery(where, `index "${index.name}" is ${index.kind}, and its embedder makes other vectors`);
}

/**
 * The bytes of a query vector for a dense index: its float32 values, little-endian.
 * Fails with `invalid_query` naming `where`.
 */
function readDenseVector(value: unknown, index: DenseDefinition, where: string): Uint8Array {
  const { name } = index;
  if (!Array.isArray(value) && typeof value !== 'string') {
    throw invalidQuery(where, `index "${name}" is dense: the vector must be ${denseForms}`);
  }
  return denseBytes(typeof value === 'string' ? unpack(value, where) : floatsOf(value, where), index, where);
}

function denseBytes(vector: Float32Array<ArrayBuffer>, index: DenseDefinition, where: string): Uint8Array {
  const { dimension, metric, name } = index;
  if (vector.length !== dimension) {
    throw invalidQuery(
      where,
      `the vector has ${vector.length} values, but index "${name}" has ${dimension} dimensions`,
    );
  }
  const squares = squaresOf(vector);
  if (!Number.isFinite(squares)) throw invalidQuery(where, 'the values must be finite float32 numbers');
  const { squaresMax } = vectorBounds();
  if (metric !== 'cosine' && squares > squaresMax) {
    throw invalidQuery(where, `the vector is too long: its squares may add up to ${squaresMax}`);
  }
  if (metric === 'cosine' && squares === 0) {
    throw invalidQuery(where, `a vector of zeros has no direction, which "cosine" of index "${name}" compares`);
  }
  return bytesOf(vector);
}

/**
 * The bytes of a query vector for a sparse index: its indices as uint32, ascending, then as many values as float32,
 * little-endian. Zero weights are left out. Fails with `invalid_query` or `limit_exceeded` naming `where`.
 */
function readSparseVector(value: unknown, { name }: SparseDefinition, where: string): Uint8Array {
  if (!isObject(value)) throw invalidQuery(where, `index "${name}" is sparse: the vector must be ${sparseForms}`);
  const [indices, values] = readSparseForm(value, where);
  return sparseBytes(indices, values, where);
}

function sparseBytes(indices: Uint32Array, values: Float32Array, where: string): Uint8Array {
  if (indices.length !== values.length) {
    throw invalidQuery(where, `has ${indices.length} indices and ${values.length} values; each index needs one`);
  }
  const { sparseEntriesMax } = vectorBounds();
  if (indices.length > sparseEntriesMax) {
    throw new ServiceError('limit_exceeded', `${where}: a sparse vector has at most ${sparseEntriesMax} entries`);
  }
  const entries: [index: number, weight: number][] = [];
  for (const [at, index] of indices.entries()) {
    const weight = values[at] ?? 0;
    if (!Number.isFinite(weight)) throw invalidQuery(where, 'the values must be finite float32 numbers');
    entries.push([index, weight]);
  }
  entries.sort(([a], [b]) => a - b);
  const twice = entries.find(([index], at) => at > 0 && entries[at - 1]?.[0] === index);
  if (twice) throw invalidQuery(where, `index ${twice[0]} is given twice`);
  const kept = entries.filter(([, weight]) => weight !== 0);
  const bytes = new Uint8Array(kept.length * 8);
  new Uint32Array(bytes.buffer, 0, kept.length).set(kept.map(([index]) => index));
  new Float32Array(bytes.buffer, kept.length * 4).set(kept.map(([, weight]) => weight));
  return bytes;
}

function readSparseForm(value: Members, where: string): [indices: Uint32Array, values: Float32Array] {
  if (Object.hasOwn(value, 'indices') || Object.hasOwn(value, 'values')) {
    checkMembers(value, ['indices', 'values'], where);
    const indices = member(value, 'indices');
    const values = member(value, 'values');
    if (!Array.isArray(indices) || !Array.isArray(values)) {
      throw invalidQuery(where, '"indices" and "values" must both be arrays');
    }
    return [tokensOf(indices, where), floatsOf(values, where)];
  }
  if (Object.hasOwn(value, 'packed_indices') || Object.hasOwn(value, 'packed_values')) {
    checkMembers(value, ['packed_indices', 'packed_values'], where);
    const indices = member(value, 'packed_indices');
    const values = member(value, 'packed_values');
    if (typeof indices !== 'string' || typeof values !== 'string') {
      throw invalidQuery(where, '"packed_indices" and "packed_values" must both be base64 strings');
    }
    return [new Uint32Array(unpack(indices, where).buffer), unpack(values, where)];
  }
  const tokens = Object.keys(value).map((token) => {
    if (/^\d{1,10}$/.test(token)) return Number(token);
    throw invalidQuery(where, `"${token.slice(0, 64)}" is not a token; the vector must be ${sparseForms}`);
  });
  return [tokensOf(tokens, where), floatsOf(Object.values(value), where)];
}

function tokensOf(values: readonly unknown[], where: string): Uint32Array {
  const tokens = new Uint32Array(values.length);
  for (let at = 0; at < values.length; at += 1) {
    const token = values[at];
    if (typeof token !== 'number' || !Number.isInteger(token) || token < 0 || token > 0xffff_ffff) {
      throw invalidQuery(where, 'the indices of a sparse vector must be integers from 0 to 4294967295');
    }
    tokens[at] = token;
  }
  return tokens;
}

function floatsOf(values: readonly unknown[], where: string): Float32Array<ArrayBuffer> {
  const floats = new Float32Array(values.length);
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    if (typeof value !== 'number') throw invalidQuery(where, 'the values of a vector must be numbers');
    floats[at] = value;
  }
  return floats;
}

function squaresOf(vector: Float32Array): number {
  let sum = 0;
  // An iterator would take ten times as long as all the rest of a packed vector.
  for (let at = 0; at < vector.length; at += 1) sum += (vector[at] ?? 0) ** 2;
  return sum;
}

/** Base64 of 4-byte values, standard or URL-safe, with or without its padding. */
function unpack(text: string, where: string): Float32Array<ArrayBuffer> {
  const bytes = base64Bytes(text);
  const floats = new Float32Array(bytes === undefined ? 0 : Math.floor(bytes / 4));
  if (bytes === floats.byteLength && decodeBase64Into(bytesOf(floats), text)) return floats;
  throw invalidQuery(where, 'is not base64 of 4-byte little-endian values');
}

function bytesOf(vector: Float32Array<ArrayBuffer>): Buffer {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
}
