import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import type { Embeddings, EmbedItem, EmbedRequest, SparseVector } from '../../inference/embeddings/embed-items.ts';
import { type EmbedTask, inputTypes } from '../../inference/embeddings/task-prefix.ts';
import type { Inference } from '../../inference/inference.ts';
import { mediaReference } from '../../inference/media/media-reference.ts';
import { OwnProvider } from '../../inference/providers/own-provider.ts';
import type { Provider } from '../../inference/providers/provider.ts';
import { must } from '../../lib/assert.ts';
import { type ContentPart, partOfText } from '../../protocol/inference/content-parts.ts';
import {
  type EmbeddingsRequest,
  embeddingsRequestSchema,
  embeddingsResponseSchema,
} from '../../protocol/inference/embeddings.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { accepts } from '../listener/accepts.ts';
import { errorBody } from '../listener/error-response.ts';
import { bytesOf } from '../listener/msgpack/msgpack-answer.ts';
import { Reply } from '../listener/reply.ts';
import { defineRoute, type Route, type RouteContext } from '../routing/route.ts';
import { timed } from './admitted.ts';
import { foreignToEmbeddings } from './foreign-members.ts';
import { inferenceBody } from './inference-body.ts';
import { checkTexts, truncation } from './texts-of-request.ts';

const packedType = 'application/octet-stream';
const packedName = /\bapplication\/octet-stream\b/i;
const noBase64 = 'sparse vectors have no base64 form; "encoding_format" has to be float';
const noPacked = `sparse vectors have no packed form; leave out "Accept: ${packedType}"`;

export function embeddingRoutes(inference: Inference, provider: Provider = new OwnProvider(inference)): Route[] {
  const embed = embedder(inference, provider);
  const at = (path: '/ai/v1/embeddings' | '/ai/v1/embed') =>
    defineRoute({
      method: 'POST',
      path,
      access: { inference: 'read' },
      models: ({ model }) => [model],
      tag: 'Inference',
      summary: 'Embed texts, and images where the model looks at them',
      description:
        'As the OpenAI interface has it. Sparse models answer `{indices, values}`. With `Accept: application/octet-stream` the answer is packed: count and dimension as 64-bit integers, then 32-bit floating point numbers, all little-endian.',
      body: inferenceBody(embeddingsRequestSchema, {
        bytesMax: limits.generateBodyBytesMax,
        foreign: foreignToEmbeddings,
      }),
      msgpack: true,
      responses: {
        200: {
          description: 'The vectors',
          schema: embeddingsResponseSchema,
          also: { [packedType]: Type.String({ format: 'binary' }) },
        },
      },
      handler: (context) => embed(context.body, context),
    });
  return [at('/ai/v1/embeddings'), at('/ai/v1/embed')];
}

type Context = Pick<
  RouteContext<object, object, unknown>,
  'request' | 'caller' | 'signal' | 'acceptsMsgpack' | 'addTiming'
>;

/** Answers requests for embeddings in the shape of the OpenAI interface. */
export function embedder(
  inference: Inference,
  provider: Provider = new OwnProvider(inference),
): (body: EmbeddingsRequest, context: Context) => Promise<Reply | object> {
  return (body, context) =>
    timed(inference, context, async () => {
      const packed = accepts(context.request.headers.get('accept'), packedName);
      const format = context.acceptsMsgpack ? 'bytes' : (body.encoding_format ?? 'float');
      const denseOnly = packed ? noPacked : format === 'base64' ? noBase64 : undefined;
      const embeddings = await provider.embed({ ...embedRequest(body, packed), denseOnly }, context);
      return packed ? packedReply(embeddings) : listAnswer(embeddings, format);
    });
}

function embedRequest(body: EmbeddingsRequest, packed: boolean): EmbedRequest {
  const keepGoing = body.error_policy === 'continue';
  if (packed && keepGoing) {
    throw new ServiceError(
      'invalid_request',
      'a packed answer has no place for errors; "error_policy" has to be fail_fast',
    );
  }
  return {
    model: body.model,
    items: itemsOf(body, keepGoing),
    task: taskOf(body),
    instruction: body.instruction ?? undefined,
    dimensions: body.dimensions ?? undefined,
    truncate: truncation(body.truncate ?? undefined),
    keepGoing,
  };
}

/** The inputs of every form, or what is wrong with them; of a single one only where the others are to go on. */
function itemsOf(body: EmbeddingsRequest, keepGoing: boolean): EmbedItem[] {
  const { input } = body;
  const item = (each: string | number | readonly number[] | ContentPart, at: number): EmbedItem => {
    try {
      if (Array.isArray(each)) checkVocabulary(body);
      return itemOf(each, at);
    } catch (error) {
      if (keepGoing && error instanceof ServiceError) return error;
      throw error;
    }
  };
  const items = Array.isArray(input) && !isTokens(input) ? input.map(item) : [item(input, 0)];
  if (items.length === 0) throw new ServiceError('invalid_request', 'member "input" is an empty array');
  checkTexts(items.map((each) => (typeof each === 'string' || Array.isArray(each) ? each : '')));
  return items;
}

/** Numbers of another vocabulary are valid here too, and would be embedded as other words: whose they are must be said. */
function checkVocabulary({ model, accept_token_input }: EmbeddingsRequest): void {
  if (accept_token_input === model) return;
  throw new ServiceError(
    'invalid_request',
    `"input" has tokens, which are taken only from the vocabulary of the model itself; send texts (LangChain: check_embedding_ctx_length=False), or set "accept_token_input" to "${model}" where its own tokenizer made them`,
  );
}

function isTokens(input: readonly unknown[]): input is readonly number[] {
  return typeof input[0] === 'number';
}

function itemOf(item: string | number | readonly number[] | ContentPart, at: number): EmbedItem {
  if (typeof item === 'number') return [item];
  const part = typeof item === 'string' ? partOfText(item) : item;
  if (!('type' in part)) return part;
  if (part.type === 'text') return part.text;
  return must(mediaReference(part, `input[${at}]`), 'a part that is not text refers to media');
}

function taskOf({ task_type, input_type }: EmbeddingsRequest): EmbedTask | undefined {
  const other = typeof input_type === 'string' ? inputTypes[input_type] : undefined;
  if (typeof task_type === 'string' && other !== undefined && task_type !== other) {
    throw new ServiceError(
      'invalid_request',
      `"task_type" says ${task_type} and "input_type" says ${input_type}; give one of them`,
    );
  }
  return task_type ?? other;
}

type WireFormat = 'float' | 'base64' | 'bytes';

function listAnswer({ model, vectors, tokens, faults }: Embeddings, format: WireFormat): object {
  const data = vectors.flatMap((vector, index) =>
    vector === undefined ? [] : [{ object: 'embedding', embedding: wireForm(vector, format), index }],
  );
  return {
    object: 'list',
    data,
    model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
    errors: faults.map(({ index, error }) => {
      const { code, message, retryable, retry_after_ms = 0 } = errorBody(error);
      const stage = code === 'media_fetch_failed' || code === 'image_not_found' ? 'fetch' : 'preprocess';
      return { index, code, message, stage, retryable, status: error.status, retry_after_ms };
    }),
    summary: { total: vectors.length, succeeded: data.length, failed: faults.length },
  };
}

function wireForm(vector: Float32Array | SparseVector, format: WireFormat): string | number[] | object {
  if (!(vector instanceof Float32Array)) {
    if (format === 'bytes') {
      const indices = Uint32Array.from(vector.indices);
      return { packed_indices: bytesOf(indices), packed_values: bytesOf(Float32Array.from(vector.values)) };
    }
    if (format === 'float') return { indices: [...vector.indices], values: [...vector.values] };
    throw new ServiceError('invalid_request', noBase64);
  }
  if (format === 'float') return Array.from(vector);
  if (format === 'bytes') return bytesOf(vector);
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64');
}

function packedReply({ vectors, dimension }: Embeddings): Reply {
  const bytes = new Uint8Array(16 + vectors.length * dimension * 4);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(vectors.length), true);
  view.setBigUint64(8, BigInt(dimension), true);
  for (const [row, vector] of vectors.entries()) {
    if (!(vector instanceof Float32Array)) throw new ServiceError('invalid_request', noPacked);
    bytes.set(new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength), 16 + row * dimension * 4);
  }
  return new Reply(200, bytes, { 'content-type': packedType });
}
