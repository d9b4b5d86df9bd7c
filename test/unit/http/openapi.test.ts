import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import Ajv2020 from 'ajv/dist/2020.js';

interface Operation {
  readonly operationId: string;
  readonly security?: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses?: Readonly<Record<string, { readonly content?: object; readonly headers?: object }>>;
}
interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
  readonly security: readonly object[];
  readonly components: { readonly schemas: Record<string, object>; readonly securitySchemes: object };
}

const text = readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8');
const document = JSON.parse(text) as Document;

/** Every value inside, with where it lies. */
function* valuesIn(value: unknown, at: string): Generator<[at: string, value: object]> {
  if (typeof value !== 'object' || value === null) return;
  yield [at, value];
  for (const [name, inner] of Object.entries(value)) yield* valuesIn(inner, `${at}/${name}`);
}

function hasMembers(value: object): boolean {
  if (!('type' in value && value.type === 'object' && 'properties' in value)) return false;
  return Object.keys(value.properties as object).length > 0;
}

describe('docs/openapi.json', () => {
  test('is valid OpenAPI 3.1', async () => {
    const result = await new Validator().validate(JSON.parse(text));
    expect(result).toMatchObject({ valid: true });
    expect(document.openapi).toBe('3.1.0');
  });

  test('has only schemas that are valid JSON Schema of 2020-12', () => {
    const ajv = new Ajv2020({ strict: false });
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      expect([name, ajv.validateSchema(schema), ajv.errors]).toEqual([name, true, null]);
    }
    for (const [at, value] of valuesIn(document.paths, '')) {
      if (at.endsWith('/schema')) expect([at, ajv.validateSchema(value)]).toEqual([at, true]);
    }
  });

  test('names every shape: no object with members is written inside a path or another shape', () => {
    const inline = [...valuesIn(document.paths, ''), ...valuesIn(document.components.schemas, '')].filter(
      ([at, value]) => hasMembers(value) && !/^\/[A-Za-z0-9]+$/.test(at),
    );
    expect(inline.map(([at]) => at)).toEqual([]);
  });

  test('refers to shapes that are there, and uses all of them', () => {
    const references = [...text.matchAll(/"\$ref": "#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name ?? '');
    expect(new Set(references)).toEqual(new Set(Object.keys(document.components.schemas)));
  });

  test.each([
    ['/ai/v1/generate', 'text/event-stream'],
    ['/ai/v1/chat/completions', 'text/event-stream'],
    ['/ai/v1/completions', 'text/event-stream'],
    ['/ai/v1/responses', 'text/event-stream'],
    ['/db/v1/connections/{connection}/inference/{operation}', 'text/event-stream'],
    ['/api/chat', 'application/x-ndjson'],
    ['/api/generate', 'application/x-ndjson'],
    ['/api/pull', 'application/x-ndjson'],
    ['/ai/v1/audio/transcriptions', 'text/plain'],
    ['/ai/v1/audio/translations', 'text/vtt'],
    ['/ai/v1/embeddings', 'application/octet-stream'],
  ])('tells that %s may answer as %s', (path, type) => {
    const content = document.paths[path]?.post?.responses?.[200]?.content ?? {};
    expect(Object.keys(content)).toEqual(expect.arrayContaining(['application/json', type]));
  });

  test('names the credentials, and the routes that take none', () => {
    expect(document.components.securitySchemes).toMatchObject({ bearer: { type: 'http', scheme: 'bearer' } });
    expect(document.security).toEqual([{ bearer: [] }, { basic: [] }, {}]);
    const open = Object.entries(document.paths).filter(([, { get }]) => get?.security?.length === 0);
    expect(open.map(([path]) => path)).toEqual(['/healthz', '/livez', '/readyz', '/', '/openapi.json']);
  });

  test.each([
    ['post', '/db/v1/tables/{table}/batch', 'Idempotency-Key'],
    ['post', '/db/v1/batch', 'Idempotency-Key'],
    ['post', '/db/v1/tables/{table}/merge', 'Idempotency-Key'],
    ['post', '/db/v1/transactions/commit', 'Idempotency-Key'],
    ['post', '/db/v1/restore', 'Idempotency-Key'],
    ['post', '/db/v1/tables/{table}/restore', 'Idempotency-Key'],
    ['put', '/db/v1/tables/{table}/schema', 'If-Match'],
  ])('tells that %s %s reads the header %s', (method, path, name) => {
    const { parameters = [] } = document.paths[path]?.[method] ?? {};
    expect(parameters.filter((each) => each.in === 'header').map((each) => each.name)).toEqual([name]);
  });

  test.each([
    ['/db/v1/tables/{table}', 'ETag'],
    ['/db/v1/tables/{table}/lookup/{key}', 'X-Service-Version'],
    ['/db/v1/tables/{table}/documents/{key}', 'X-Service-Version'],
  ])('tells that the answer of %s has the header %s', (path, name) => {
    expect(Object.keys(document.paths[path]?.get?.responses?.[200]?.headers ?? {})).toEqual([name]);
  });

  test('gives every operation an id of its own', () => {
    const ids = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });
});
