import { encode } from '@msgpack/msgpack';
import { Reply } from '../reply.ts';

export const msgpackType = 'application/msgpack';

/** MessagePack in a header; `application/x-msgpack` and `application/vnd.msgpack` are older names. */
export const msgpackName = /\bapplication\/(?:x-|vnd\.)?msgpack\b/i;

/** Levels of an answer: explanations nest deeper than the queries that they are of. */
const maxDepth = 1_000;

/** A value as MessagePack. Members that are undefined are left out, as in JSON. */
export function toMsgpack(value: unknown): Uint8Array<ArrayBuffer> {
  return encode(value, { ignoreUndefined: true, maxDepth });
}

/** An answer in MessagePack. */
export function msgpackReply(status: number, value: unknown, headers?: Reply['headers']): Reply {
  return new Reply(status, toMsgpack(value), { ...headers, 'content-type': msgpackType });
}

/** A document from its JSON text, the dense vectors that it is shown with as binary values. */
export function packedDocument(json: string): unknown {
  return packDocument(JSON.parse(json));
}

/** The result of a query from its JSON text, its documents as `packedDocument` has them. */
export function packedResult(json: string): unknown {
  const result = JSON.parse(json) as { hits?: { hits?: { _source?: unknown }[] } };
  for (const { _source } of result.hits?.hits ?? []) packDocument(_source);
  return result;
}

function packDocument(document: unknown): unknown {
  const embeddings = isObject(document) ? document._embeddings : undefined;
  if (isObject(embeddings)) {
    for (const [name, vector] of Object.entries(embeddings)) {
      // Of sparse vectors the indices and values stay as they are.
      const isDense = Array.isArray(vector) && !isObject(vector[0]);
      if (isDense) embeddings[name] = packedVectors(vector as number[] | number[][]);
    }
  }
  return document;
}

/** A dense vector as bytes; of a document that is embedded in chunks, those of each. */
function packedVectors(vectors: number[] | number[][]): Uint8Array | Uint8Array[] {
  const pack = (vector: number[]) => bytesOf(Float32Array.from(vector));
  return Array.isArray(vectors[0]) ? (vectors as number[][]).map(pack) : pack(vectors as number[]);
}

/** The elements as they lie in memory: little-endian, as the JSON form has them in base64. */
export function bytesOf(elements: Float32Array | Uint32Array): Uint8Array {
  return new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
