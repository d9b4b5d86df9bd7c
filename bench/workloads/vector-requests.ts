import type { Batch } from './batch-bodies.ts';
import { readQueries, readRows, type VectorSet } from './vector-set.ts';
import { zipfKey } from './zipf-documents.ts';

/** The embeddings index of the tables that these requests are for. */
export const vectorIndexName = 'place';

export function vectorTable({ dimension }: VectorSet): object {
  const index = { type: 'embeddings', external: true, dimension, distance_metric: 'cosine' };
  return { indexes: { [vectorIndexName]: index } };
}

/** Ready bodies that write every row as a small document with its vector in base64; the last waits until all are searchable. */
export function* vectorBatches(set: VectorSet, batchSize: number): Generator<Batch> {
  for (let first = 0; first < set.rows; first += batchSize) {
    const rows = readRows(set, first, batchSize);
    const documents = rows.length / set.dimension;
    const inserts = Array.from({ length: documents }, (_, at) => {
      const vector = base64(rows.subarray(at * set.dimension, (at + 1) * set.dimension));
      return `"${zipfKey(first + at)}":{"row":${first + at},"_embeddings":{"${vectorIndexName}":"${vector}"}}`;
    });
    const level = first + documents === set.rows ? ',"sync_level":"full_index"' : '';
    yield { body: Buffer.from(`{"inserts":{${inserts.join(',')}}${level}}`), documents };
  }
}

/** Ready bodies that ask for the nearest documents of each query, the vector in base64. */
export function vectorQueries(set: VectorSet, limit: number): string[] {
  return readQueries(set).map((query) => JSON.stringify({ embeddings: { [vectorIndexName]: base64(query) }, limit }));
}

/** The rows that an answer names. */
export function rowsOfAnswer(body: Uint8Array): number[] {
  const parsed = JSON.parse(Buffer.from(body).toString('utf8')) as {
    responses: { hits: { hits: { _source: { row: number } }[] } }[];
  };
  return parsed.responses[0]?.hits.hits.map((hit) => hit._source.row) ?? [];
}

function base64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
}
