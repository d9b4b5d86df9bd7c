import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConnectionEntry } from '../../../src/protocol/database/connections.ts';
import { until } from '../../support/fault/until.ts';
import { ModelService } from '../../support/providers/model-service.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

const canary = 'sk-canary-8b1f';

function addIndex(server: TestServer, name: string, embedder: object, more: object = {}) {
  const config = {
    type: 'embeddings',
    field: 'text',
    embedder: { provider: 'openai', model: 'm', ...embedder },
    ...more,
  };
  return server.send('POST', `/db/v1/tables/t/indexes/${name}`, config);
}

function write(server: TestServer, key: string, level: string) {
  return server.send('POST', '/db/v1/tables/t/batch', { inserts: { [key]: { text: key } }, sync_level: level });
}

async function connections(server: TestServer): Promise<ConnectionEntry[]> {
  return (await server.send<{ connections: ConnectionEntry[] }>('GET', '/db/v1/connections')).body.connections;
}

test('the embedder of an index takes a secret, follows its rotation, and is listed as a connection', async () => {
  await using service = new ModelService('openai');
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t', {});
  await server.send('PUT', '/db/v1/secrets/model.key', { value: canary });
  const url = `${service.url}/v1`;
  const made = await addIndex(server, 'vectors', { url, api_key: '${secret:model.key}' });
  expect(made.status).toBe(201);
  expect(JSON.stringify(made.body)).not.toContain(canary);
  expect((await write(server, 'first', 'enrichments')).status).toBe(201);
  await server.send('PUT', '/db/v1/secrets/model.key', { value: 'rotated' });
  expect((await write(server, 'second', 'enrichments')).status).toBe(201);
  const used = service.seen.map(({ headers }) => headers.get('authorization'));
  expect(used[0]).toBe(`Bearer ${canary}`);
  expect(used.at(-1)).toBe('Bearer rotated');
  const [, connection] = await connections(server);
  expect(connection).toMatchObject({
    provider: 'openai',
    kind: 'inference',
    status: 'configured',
    capabilities: [],
    sources: ['runtime:tables/t/indexes/vectors'],
    inference: { url, names: ['m'], configured_model_types: ['embedder'] },
  });
  const path = `/db/v1/connections/${connection?.id}/inference/embed`;
  expect((await server.send('POST', path, { input: 'a', model: 'm' })).status).toBe(403);
  expect(server.logLines.join('')).not.toContain('rotated');
});

test('an index whose credential cannot be used there is refused, and nobody is called', async () => {
  await using service = new ModelService('openai');
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t', {});
  await server.send('PUT', '/db/v1/secrets/bound', { value: canary, hosts: ['api.openai.com'] });
  const url = `${service.url}/v1`;
  const refused: [embedder: object, code: string][] = [
    [{ url, api_key: '${secret:never.stored}' }, 'invalid_request'],
    [{ url, api_key: '${HOME}' }, 'invalid_request'],
    [{ url, api_key: '${secret:' }, 'invalid_request'],
    [{ url, api_key: '${secret:bound}' }, 'host_not_allowed'],
    [{ url: 'http://198.51.100.1/v1', api_key: 'k' }, 'host_not_allowed'],
  ];
  for (const more of [{}, { dimension: 8 }]) {
    for (const [embedder, code] of refused) {
      const { status, body } = await addIndex(server, 'vectors', embedder, more);
      expect([embedder, more, status, body.code]).toEqual([embedder, more, 400, code]);
    }
  }
  expect(service.seen).toEqual([]);
  expect((await server.send('GET', '/db/v1/tables/t/indexes/vectors')).status).toBe(404);
});

test('a variable is kept as it was written, expanded where the provider is called, and only where it is listed', async () => {
  await using service = new ModelService('openai');
  const listed = { SUNDEW__SECRETS__VARIABLES: 'MODEL_KEY,ELSEWHERE@api.example.org' };
  await using server = await startTestServer({
    environment: { ...listed, MODEL_KEY: canary, ELSEWHERE: 'not for this host', OTHER_KEY: 'not listed' },
  });
  await server.send('POST', '/db/v1/tables/t', {});
  const url = `${service.url}/v1`;
  const made = await addIndex(server, 'vectors', { url, api_key: '${MODEL_KEY}' });
  expect([made.status, made.body.embedder]).toEqual([201, expect.objectContaining({ api_key: '${MODEL_KEY}' })]);
  expect((await write(server, 'a', 'enrichments')).status).toBe(201);
  expect(service.seen.map(({ headers }) => headers.get('authorization'))).toEqual([
    `Bearer ${canary}`,
    `Bearer ${canary}`,
  ]);
  const kept = await server.send('GET', '/db/v1/tables/t/indexes/vectors');
  expect(JSON.stringify(kept.body)).toContain('"api_key":"${MODEL_KEY}"');
  const catalog = readFileSync(join(server.directory, 'catalog.db'), 'latin1');
  expect(catalog + server.logLines.join('') + JSON.stringify(kept.body)).not.toContain(canary);
  const asked = service.seen.length;
  for (const [name, code] of [
    ['OTHER_KEY', 'invalid_request'],
    ['NOT_SET', 'invalid_request'],
    ['ELSEWHERE', 'host_not_allowed'],
  ] as const) {
    const { status, body } = await addIndex(server, 'others', { url, api_key: `\${${name}}` });
    expect([name, status, body.code]).toEqual([name, 400, code]);
  }
  expect(service.seen).toHaveLength(asked);
});

test('a secret that is removed stops the pipeline until it is there again', async () => {
  await using service = new ModelService('openai');
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t', {});
  await server.send('PUT', '/db/v1/secrets/k', { value: canary });
  await addIndex(server, 'vectors', { url: `${service.url}/v1`, api_key: '${secret:k}' });
  await server.send('DELETE', '/db/v1/secrets/k');
  expect((await write(server, 'a', 'write')).status).toBe(201);
  const status = async () => {
    const { body } = await server.send<{
      status: { doc_count: number; error?: string; source_coverage: { failed: number } };
    }>('GET', '/db/v1/tables/t/indexes/vectors');
    return body.status;
  };
  await until(async () => (await status()).error?.includes('"k"') ?? false);
  expect((await status()).source_coverage.failed).toBe(0);
  await server.send('PUT', '/db/v1/secrets/k', { value: 'back' });
  await until(async () => (await status()).doc_count === 1);
});
