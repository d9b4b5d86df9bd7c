import { AssertionError } from '../assert.ts';
import { readAsset } from './asset-part.ts';
import { readChunkSet } from './chunk-set-part.ts';
import { readDenseSet } from './dense-set-part.ts';
import { compareEdges, type Edge, edgesMax, readEdges } from './edges-part.ts';
import { formOfBody, partForm, payloadOf } from './part-body.ts';
import { readSparseSet, type SpanSparseVector } from './sparse-set-part.ts';

type SparseVector = SpanSparseVector['vector'];

const headBytes = 8;
const hashedHeadBytes = 24;

/**
 * Whether the body of a part that comes from elsewhere is one that this release could have written: who reads it later takes its
 * lengths and numbers for granted.
 */
export function isWholePart(body: Uint8Array): boolean {
  const [flags = 0, sixth = 0, seventh = 0] = body.subarray(5, headBytes);
  if (flags > (formOfBody(body) === partForm.asset ? 3 : 1) || sixth !== 0 || seventh !== 0) return false;
  if (body.byteLength < ((flags & 1) === 0 ? headBytes : hashedHeadBytes)) return false;
  try {
    return hasPayload(body);
  } catch (error) {
    // Lengths that go beyond the payload, and texts that are not UTF-8.
    if (error instanceof AssertionError || error instanceof RangeError || error instanceof TypeError) return false;
    throw error;
  }
}

function hasPayload(body: Uint8Array): boolean {
  switch (formOfBody(body)) {
    case partForm.dense:
      return isVector(new Float32Array(payloadOf(body).buffer));
    case partForm.sparse: {
      const { buffer, byteLength } = payloadOf(body);
      if (byteLength % 8 !== 0) return false;
      const entries = byteLength / 8;
      return isSparse({ indices: new Uint32Array(buffer, 0, entries), values: new Float32Array(buffer, 4 * entries) });
    }
    case partForm.denseSet: {
      const vectors = readDenseSet(body);
      return vectors.length > 0 && vectors.every(({ vector }) => isVector(vector));
    }
    case partForm.sparseSet: {
      const vectors = readSparseSet(body);
      return vectors.length > 0 && vectors.every(({ vector }) => isSparse(vector));
    }
    case partForm.edges:
      return areEdges(readEdges(body));
    case partForm.chunkSet:
      readChunkSet(body);
      return true;
    case partForm.asset:
      readAsset(body);
      return true;
    default:
      return false;
  }
}

function areEdges(edges: readonly Edge[]): boolean {
  if (edges.length > edgesMax) return false;
  return edges.every((edge, at) => {
    const last = edges[at - 1];
    return Number.isFinite(edge.weight) && (!last || compareEdges(last, edge) < 0);
  });
}

function isVector(numbers: Float32Array): boolean {
  for (const number of numbers) if (!Number.isFinite(number)) return false;
  return numbers.length > 0;
}

function isSparse({ indices, values }: SparseVector): boolean {
  let last = -1;
  for (const index of indices) {
    if (index <= last) return false;
    last = index;
  }
  for (const value of values) if (!Number.isFinite(value)) return false;
  return true;
}
