import type { TObject, TSchema } from '@sinclair/typebox';
import * as clientAudio from '../../protocol/clients/audio.ts';
import * as clientOllama from '../../protocol/clients/ollama.ts';
import * as clientRerank from '../../protocol/clients/rerank.ts';
import * as clientResponses from '../../protocol/clients/responses.ts';
import * as clientTei from '../../protocol/clients/tei.ts';
import * as clientTokens from '../../protocol/clients/tokens.ts';
import * as artifacts from '../../protocol/database/artifacts.ts';
import * as cluster from '../../protocol/database/cluster.ts';
import * as indexDetails from '../../protocol/database/index-details.ts';
import * as queries from '../../protocol/database/query.ts';
import * as tables from '../../protocol/database/tables.ts';
import * as writes from '../../protocol/database/writes.ts';
import { errorCodes } from '../../protocol/error-codes.ts';
import * as chunk from '../../protocol/inference/chunk.ts';
import * as contentParts from '../../protocol/inference/content-parts.ts';
import * as embeddings from '../../protocol/inference/embeddings.ts';
import { isInferencePath } from '../../protocol/inference/error-body.ts';
import * as extract from '../../protocol/inference/extract.ts';
import * as generate from '../../protocol/inference/generate.ts';
import * as generateBatch from '../../protocol/inference/generate-batch.ts';
import * as predict from '../../protocol/inference/predict.ts';
import * as rerank from '../../protocol/inference/rerank.ts';
import * as seq2seq from '../../protocol/inference/seq2seq.ts';
import * as usage from '../../protocol/inference/usage.ts';
import * as models from '../../protocol/models/models.ts';
import { nameCharsMax } from '../../protocol/names.ts';
import { msgpackType } from '../listener/msgpack/msgpack-answer.ts';
import { OpenApiSchemas, pascalCase } from './openapi-schemas.ts';
import type { Route } from './route.ts';

type Json = Record<string, unknown>;

const protocol = [tables, writes, queries, usage, contentParts, embeddings, chunk, rerank, generate, generateBatch];
const states = [cluster, indexDetails, artifacts];
const tasks = [extract, models, predict, seq2seq];
const clients = [clientAudio, clientOllama, clientRerank, clientResponses, clientTei, clientTokens];

/** None of them is needed while `auth.enabled` is false. */
const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', description: 'An API key, as its creation has answered it in `encoded`.' },
  basic: { type: 'http', scheme: 'basic', description: 'A user and its password.' },
};

const dataName = {
  type: 'string',
  minLength: 1,
  maxLength: nameCharsMax,
  description: 'Letters and digits of any script, `_`, `-` and `.`; the first is a letter or a digit.',
};
/** By parameter of a path: the texts that it may be. */
const pathTexts: Readonly<Record<string, Json>> = {
  table: dataName,
  index: dataName,
  artifact: dataName,
  transaction: { type: 'string', pattern: '^[0-9a-f]{32}$' },
  savepoint: { type: 'integer' },
  user: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$' },
};

/** The OpenAPI 3.1 document of the routes, in their order, with operation ids made from method and path. */
export function renderOpenApi(routes: readonly Route[], version: string): Json {
  const schemas = new OpenApiSchemas([...protocol, ...states, ...tasks, ...clients]);
  schemas.add('Error', errorSchema());
  schemas.add('InferenceError', inferenceErrorSchema());
  const paths: Record<string, Json> = {};
  for (const route of routes.filter(({ hidden }) => !hidden)) {
    const path = route.path.replaceAll(/:([^/]+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sundew',
      version,
      description:
        'JSON documents with full-text and vector indexes, and inference, over HTTP. docs/errors.md lists the codes of errors.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    tags: [...new Set(routes.filter(({ hidden }) => !hidden).map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { schemas: schemas.components, securitySchemes },
    security: [...Object.keys(securitySchemes).map((name) => ({ [name]: [] })), {}],
  };
}

function operation(route: Route, schemas: OpenApiSchemas): Json {
  const id = operationId(route);
  const answers: Record<string, Json> = {};
  for (const [status, { description, schema, contentType, also = {}, headers }] of Object.entries(route.responses)) {
    const rendered = schema === undefined ? {} : schemas.render(schema, `${pascalCase(id)}Response`);
    if (schema === undefined && contentType === undefined) {
      answers[status] = { description };
      continue;
    }
    const others = otherContent(also, schemas, `${pascalCase(id)}Other`);
    answers[status] = {
      description,
      ...(headers === undefined
        ? {}
        : { headers: Object.fromEntries(Object.entries(headers).map(([name, help]) => [name, headerOf(help)])) }),
      content: { ...contentOf(contentType ?? 'application/json', rendered, route), ...others },
    };
  }
  const error = isInferencePath(route.path) ? 'InferenceError' : 'Error';
  const content = { 'application/json': { schema: { $ref: `#/components/schemas/${error}` } } };
  answers.default ??= { description: 'An error.', content };
  return {
    operationId: id,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    ...(route.access === 'open' ? { security: [] } : {}),
    ...parameters(route, schemas),
    ...requestBody(route, schemas),
    responses: answers,
  };
}

function operationId({ method, path }: Route): string {
  const words = path.split(/[/:_.-]+/).filter((word) => word !== '');
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

function parameters(route: Route, schemas: OpenApiSchemas): Json {
  const inPath = [...route.path.matchAll(/:([^/]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: pathTexts[name ?? ''] ?? { type: 'string', minLength: 1 },
  }));
  const inQuery = Object.entries((route.query as TObject | undefined)?.properties ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: route.query?.required?.includes(name) ?? false,
    ...(schema.description === undefined ? {} : { description: schema.description }),
    schema: schemas.render(schema, pascalCase(name)),
    // Lists are separated by commas.
    ...(schema.type === 'array' ? { style: 'form', explode: false } : {}),
  }));
  const inHeader = Object.entries(route.headers ?? {}).map(([name, help]) => ({
    name,
    in: 'header',
    ...headerOf(help),
  }));
  const all = [...inPath, ...inQuery, ...inHeader];
  return all.length === 0 ? {} : { parameters: all };
}

function headerOf(description: string): Json {
  return { description, schema: { type: 'string' } };
}

function requestBody(route: Route, schemas: OpenApiSchemas): Json {
  const { body } = route;
  if (body === undefined) return {};
  const contentType = body.kind === 'bytes' ? (body.contentType ?? 'application/json') : 'application/json';
  const shown = (body.kind === 'json' && body.documented) || body.schema;
  const schema = shown === undefined ? {} : schemas.render(shown, `${pascalCase(operationId(route))}Request`);
  const required = !(body.kind === 'json' && body.optional === true);
  const others = otherContent(
    (body.kind === 'bytes' && body.also) || {},
    schemas,
    `${pascalCase(operationId(route))}Other`,
  );
  return { requestBody: { required, content: { ...contentOf(contentType, schema, route), ...others } } };
}

function otherContent(also: Readonly<Record<string, TSchema>>, schemas: OpenApiSchemas, name: string): Json {
  return Object.fromEntries(
    Object.entries(also).map(([type, schema]) => [type, { schema: schemas.render(schema, name) }]),
  );
}

function contentOf(contentType: string, schema: Json, { msgpack }: Route): Json {
  return { [contentType]: { schema }, ...(msgpack === true ? { [msgpackType]: { schema } } : {}) };
}

function errorSchema(): Json {
  return {
    type: 'object',
    required: ['code', 'error', 'message', 'retryable'],
    properties: {
      code: { type: 'string', enum: Object.keys(errorCodes) },
      error: { type: 'string', description: 'The same text as `message`.' },
      message: { type: 'string' },
      retryable: { type: 'boolean' },
      retry_after_ms: { type: 'integer', minimum: 1 },
    },
  };
}

function inferenceErrorSchema(): Json {
  return {
    type: 'object',
    required: ['error', 'message', 'reason', 'retryable', 'retry_after_ms'],
    properties: {
      error: { type: 'string', description: 'The code, and after it the text of `message`.' },
      message: { type: 'string' },
      reason: { type: 'string', description: 'The class of the error.' },
      retryable: { type: 'boolean' },
      retry_after_ms: { type: 'integer', minimum: 0 },
    },
  };
}
