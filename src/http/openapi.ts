import type { TObject, TSchema } from '@sinclair/typebox';
import { errorCodes } from '../protocol/error-codes.ts';
import type { Route } from './route.ts';

type Json = Record<string, unknown>;

/** The OpenAPI 3.1 document of the routes, in their order, with operation ids made from method and path. */
export function renderOpenApi(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes.filter(({ hidden }) => !hidden)) {
    const path = route.path.replaceAll(/:([^/]+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sundew',
      version,
      description:
        'JSON documents and their full-text index over HTTP. Errors have one shape; docs/errors.md lists their codes.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    tags: [...new Set(routes.filter(({ hidden }) => !hidden).map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { schemas: { Error: errorSchema() } },
  };
}

function operation(route: Route): Json {
  const answers: Record<string, Json> = {};
  for (const [status, { description, schema, contentType }] of Object.entries(route.responses)) {
    const content =
      schema === undefined && contentType === undefined
        ? {}
        : { content: { [contentType ?? 'application/json']: { schema: schema ?? {} } } };
    answers[status] = { description, ...content };
  }
  answers.default ??= {
    description: 'An error.',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  };
  return {
    operationId: operationId(route),
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    ...parameters(route),
    ...requestBody(route),
    responses: answers,
  };
}

function operationId({ method, path }: Route): string {
  const words = path.split(/[/:_.-]+/).filter((word) => word !== '');
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

function parameters(route: Route): Json {
  const inPath = [...route.path.matchAll(/:([^/]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const inQuery = Object.entries((route.query as TObject | undefined)?.properties ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    required: route.query?.required?.includes(name) ?? false,
    ...(schema.description === undefined ? {} : { description: schema.description }),
    schema,
    // Lists are separated by commas.
    ...(schema.type === 'array' ? { style: 'form', explode: false } : {}),
  }));
  const all = [...inPath, ...inQuery];
  return all.length === 0 ? {} : { parameters: all };
}

function requestBody({ body }: Route): Json {
  if (body === undefined) return {};
  const contentType = body.kind === 'bytes' ? (body.contentType ?? 'application/json') : 'application/json';
  const schema: TSchema | Json = body.schema ?? {};
  const required = !(body.kind === 'json' && body.optional === true);
  return { requestBody: { required, content: { [contentType]: { schema } } } };
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
