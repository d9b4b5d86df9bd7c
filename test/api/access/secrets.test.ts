import { expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

const canary = 'canary-7f3a9c51';

interface Entry {
  key: string;
  status: string;
  env_var: string;
  hosts?: string[];
  created_at?: string;
  updated_at?: string;
}

async function list(server: TestServer): Promise<Entry[]> {
  return (await server.send<{ secrets: Entry[] }>('GET', '/db/v1/secrets')).body.secrets;
}

test('a secret is stored, listed without its value, replaced and removed', async () => {
  await using server = await startTestServer();
  const put = await server.send<Entry>('PUT', '/db/v1/secrets/openai.api_key', { value: canary });
  expect(put.status).toBe(200);
  expect(put.body).toEqual({
    key: 'openai.api_key',
    status: 'configured_file',
    env_var: 'OPENAI_API_KEY',
    created_at: expect.any(String),
    updated_at: put.body.created_at ?? 'absent',
  });
  expect(new Date(put.body.created_at ?? '').toISOString()).toBe(put.body.created_at ?? 'absent');
  const bound = await server.send<Entry>('PUT', '/db/v1/secrets/openai.api_key', {
    value: 'x',
    hosts: ['a.example.org'],
  });
  expect(bound.body).toMatchObject({ hosts: ['a.example.org'], created_at: put.body.created_at });
  expect(await list(server)).toEqual([bound.body]);
  expect((await server.send('DELETE', '/db/v1/secrets/openai.api_key')).status).toBe(204);
  const gone = await server.send('DELETE', '/db/v1/secrets/openai.api_key');
  expect([gone.status, gone.body.code]).toEqual([404, 'secret_not_found']);
  expect(await list(server)).toEqual([]);
});

test('variables that credentials may refer to are listed, others of the environment are not', async () => {
  const environment = { OPENAI_API_KEY: canary, OTHER_KEY: canary };
  await using server = await startTestServer({ environment });
  expect(await list(server)).toEqual([{ key: 'openai_api_key', status: 'configured_env', env_var: 'OPENAI_API_KEY' }]);
  await server.send('PUT', '/db/v1/secrets/openai.api_key', { value: 'x' });
  const [entry, ...others] = await list(server);
  expect([entry?.status, others]).toEqual(['configured_both', []]);
  await server.send('DELETE', '/db/v1/secrets/openai.api_key');
  const gone = await server.send<{ message: string }>('DELETE', '/db/v1/secrets/openai.api_key');
  expect([gone.status, gone.body.message]).toEqual([404, expect.stringContaining('"OPENAI_API_KEY"')]);
});

test('what is malformed is refused and nothing is stored', async () => {
  await using server = await startTestServer();
  const refused: [path: string, body: unknown][] = [
    ['a', {}],
    ['a', { value: '' }],
    ['a', { value: 7 }],
    ['a', { value: null }],
    ['a', { value: 'x'.repeat(65_537) }],
    ['a', { value: 'x', hosts: ['https://a.example.org/'] }],
    ['a..b', { value: 'x' }],
    ['.a', { value: 'x' }],
    ['a%20b', { value: 'x' }],
    ['a%2Fb', { value: 'x' }],
  ];
  for (const [key, body] of refused) {
    const answer = await server.send('PUT', `/db/v1/secrets/${key}`, body);
    expect([key, answer.status, answer.body.code]).toEqual([key, 400, 'invalid_request']);
  }
  expect(await list(server)).toEqual([]);
  const one = await server.send('GET', '/db/v1/secrets/a');
  expect(one.status).toBe(405);
});

test('status tells of generations and of a file that cannot be read', async () => {
  await using server = await startTestServer();
  const store = async () => (await server.send<{ secret_store: object }>('GET', '/db/v1/status')).body.secret_store;
  expect(await store()).toEqual({
    generation: 0,
    supports_source_generation: true,
    source_generation: '',
    last_reload_failed: false,
    stale: false,
    reload_successes: 0,
    reload_failures: 0,
  });
  await server.send('PUT', '/db/v1/secrets/a', { value: canary });
  expect(await store()).toMatchObject({ generation: 1, stale: false });
  const file = join(server.directory, 'secret-store.json');
  const before = readFileSync(file, 'utf8');
  writeFileSync(file, before.slice(0, -9));
  expect(await store()).toMatchObject({ generation: 1, stale: true, last_reload_failed: true, reload_failures: 1 });
  const refused = await server.send('PUT', '/db/v1/secrets/b', { value: canary });
  expect([refused.status, refused.body.code]).toEqual([503, 'unavailable']);
  expect((await list(server)).map(({ key }) => key)).toEqual(['a']);
  writeFileSync(file, before.replace('"a"', '"c"'));
  expect(await store()).toMatchObject({ generation: 2, stale: false, last_reload_failed: false, reload_successes: 1 });
  expect((await list(server)).map(({ key }) => key)).toEqual(['c']);
  expect(server.logLines.filter((line) => line.includes('were there before'))).toHaveLength(1);
});

test('a server starts with a file of secrets that is broken, in the place that the option names', async () => {
  await using first = await startTestServer();
  const file = join(first.directory, 'elsewhere.json');
  writeFileSync(file, canary);
  await using server = await startTestServer({ environment: { SUNDEW__SECRETS__FILE: file } });
  const { body } = await server.send<{ secret_store: object }>('GET', '/db/v1/status');
  expect(body.secret_store).toMatchObject({ stale: true, generation: 0, reload_failures: 1 });
  writeFileSync(file, '{"secrets":[{"key":"k","value":"v"}]}');
  expect((await list(server)).map(({ key }) => key)).toEqual(['k']);
});

test('a file that was put in place before the first start is used', async () => {
  using directory = new TemporaryDirectory();
  directory.write('secret-store.json', '{"secrets":[{"key":"prepared","value":"v"}]}');
  await using server = await startTestServer({ directory: directory.path });
  const prepared = { key: 'prepared', status: 'configured_file', env_var: 'PREPARED' };
  expect(await list(server)).toEqual([prepared]);
  const { body } = await server.send<object>('PUT', '/db/v1/secrets/prepared', { value: 'w' });
  expect(body).toEqual({ ...prepared, created_at: expect.any(String), updated_at: expect.any(String) });
  // Only its owner is meant to read it.
  expect(server.logLines.filter((line) => line.includes('can be read by others'))).toHaveLength(1);
});

test('values are in no answer, log line, metric or document of the interface', async () => {
  const environment = { OPENAI_API_KEY: `${canary}-environment` };
  await using server = await startTestServer({ environment });
  const seen: string[] = [];
  const ask = async (method: string, path: string, body?: unknown) => {
    const { headers, body: answer } = await server.send(method, path, body);
    seen.push(JSON.stringify([...headers]), JSON.stringify(answer));
  };
  await ask('PUT', '/db/v1/secrets/a', { value: canary });
  await ask('PUT', '/db/v1/secrets/a', { value: canary, hosts: ['not a host'] });
  await ask('PUT', '/db/v1/secrets/a', { value: canary, hosts: canary });
  await ask('PUT', '/db/v1/secrets/a', `{"value": "${canary}"`);
  await ask('PUT', '/db/v1/secrets/a', { value: [canary] });
  for (const path of ['secrets', 'status', 'cluster', 'tables', 'openapi.json']) await ask('GET', `/db/v1/${path}`);
  for (const path of ['/readyz', '/openapi.json', '/docs']) await ask('GET', path);
  await ask('DELETE', '/db/v1/secrets/a');
  await ask('DELETE', '/db/v1/secrets/a');
  const file = join(server.directory, 'secret-store.json');
  writeFileSync(file, `{"secrets": [{"key": "a", "value": "${canary}"`);
  await ask('GET', '/db/v1/secrets');
  await ask('GET', '/db/v1/status');
  expect(seen.filter((text) => text.includes(canary))).toEqual([]);
  expect(server.logLines.filter((line) => line.includes(canary))).toEqual([]);
});
