import { readDense } from '../../../src/lib/parts/dense-part.ts';
import { formOfBody, partForm } from '../../../src/lib/parts/part-body.ts';
import { readSparse, type SparseVector } from '../../../src/lib/parts/sparse-part.ts';

/** The vector of a part; undefined for its deletion. */
export function readVector(body: Uint8Array): { dense: Float32Array } | SparseVector | undefined {
  const form = formOfBody(body);
  if (form === partForm.dense) return { dense: readDense(body) };
  return form === partForm.sparse ? readSparse(body) : undefined;
}
