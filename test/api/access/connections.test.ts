import { describe, expect, test } from 'bun:test';
import type { ConnectionEntry } from '../../../src/protocol/database/connections.ts';
import { UpstreamServer } from '../../support/elsewhere/upstream-server.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { ModelService } from '../../support/providers/model-service.ts';
import { type Answer, startTestServer, type TestServer } from '../../support/test-server.ts';

const canary = 'sk-canary-51c9f0aa';

async function list(server: TestServer, query = ''): Promise<ConnectionEntry[]> {
  const { status, body } = await server.send<{ connections: ConnectionEntry[] }>('GET', `/db/v1/connections${query}`);
  expect(status).toBe(200);
  return body.connections;
}

function byId(entries: readonly ConnectionEntry[]): Record<string, ConnectionEntry> {
  return Object.fromEntries(entries.map((entry) => [entry.id, entry]));
}

/** A file with one connection in the protocol of OpenAI. */
function openAiFile(url: string, more = ''): string {
  return `
connections:
  main:
    kind: inference
    display_name: Main models
    inference: {provider: openai, url: "${url}/v1", api_key: "\${secret:main.key}", names: [small]}
${more}`;
}

const modelList = () => Response.json({ object: 'list', data: [{ id: 'small' }, { id: 'large' }] });

describe('the list of connections', () => {
  test('has the models of this server, and asks nobody', async () => {
    await using server = await startTestServer();
    expect(await list(server)).toEqual([
      {
        id: 'local-inference',
        name: 'local-inference',
        display_name: 'Models of this server',
        provider: 'service',
        kind: 'inference',
        status: 'configured',
        error: null,
        capabilities: ['embed', 'generate', 'rerank', 'chunk', 'extract', 'predict'].map((each) => `models.${each}`),
        sources: ['runtime:inference'],
        inference: {
          provider: 'service',
          url: null,
          region: null,
          project_id: null,
          location: null,
          names: [],
          configured_model_types: [],
          models: null,
        },
        web_search: null,
        external_io: null,
        database: null,
        cdc: null,
      },
    ]);
  });

  test('has all four kinds of the configuration, by their kind where that is asked for', async () => {
    await using upstream = new UpstreamServer(modelList);
    const file = openAiFile(
      upstream.url,
      `
  files: {kind: external_io, capabilities: [backup.write], external_io: {protocol: filesystem, root: /nowhere/at/all}}
  changes: {kind: cdc, cdc: {provider: postgres, dsn: "postgres://x:${canary}@localhost/db", table_name: t}}
  search: {kind: web_search, web_search: {service: brave, api_key: "${canary}", max_results: 7}}
`,
    );
    await using server = await startTestServer({ file });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: canary });
    const all = byId(await list(server));
    expect(Object.keys(all).sort()).toEqual(['changes', 'files', 'local-inference', 'main', 'search']);
    expect(all.main).toMatchObject({
      display_name: 'Main models',
      capabilities: ['models.embed', 'models.generate'],
      sources: ['config:connections/main'],
      inference: { url: `${upstream.url}/v1`, names: ['small'], models: null },
    });
    expect(all.files).toMatchObject({ provider: 'filesystem', capabilities: ['backup.write'], display_name: 'files' });
    expect(all.changes).toMatchObject({ provider: 'postgres', cdc: { table_name: 't', phase: null } });
    expect(all.search).toMatchObject({ web_search: { service: 'brave', max_results: 7, configured: true } });
    const kinds = async (types: string) => (await list(server, `?types=${types}`)).map(({ kind }) => kind).sort();
    expect(await kinds('cdc,web_search')).toEqual(['cdc', 'web_search']);
    expect(await kinds('cdc,%20web_search')).toEqual(['cdc', 'web_search']);
    expect(await kinds('nonsense')).toEqual([]);
    expect(upstream.requests).toEqual([]);
    expect(JSON.stringify(all)).not.toContain(canary);
    expect(JSON.stringify(all)).not.toContain('/nowhere');
  });

  test('asks services when it is told to, keeps what it found, and asks again with refresh', async () => {
    await using upstream = new UpstreamServer(modelList);
    // A clock that stands still: nobody is given up on because the machine is busy.
    await using server = await startTestServer({ file: openAiFile(upstream.url), clock: new FakeClock() });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: canary });
    const { main, 'local-inference': own } = byId(await list(server, '?include=models,status'));
    expect(main).toMatchObject({ status: 'connected', error: null });
    expect(main?.inference?.models).toEqual({
      other: [
        { name: 'small', display_name: 'small', dimensions: null, configured: true },
        { name: 'large', display_name: 'large', dimensions: null, configured: false },
      ],
    });
    expect(own).toMatchObject({ status: 'connected' });
    expect(own?.inference?.models?.chunkers?.map(({ name }) => name)).toEqual(['fixed']);
    expect(upstream.requests).toEqual([
      { method: 'GET', path: '/v1/models', search: '', authorization: `Bearer ${canary}`, text: '' },
    ]);
    expect(byId(await list(server, '?include=status')).main?.inference?.models).toBeNull();
    expect(upstream.requests).toHaveLength(1);
    await list(server, '?include=models&refresh=true');
    expect(upstream.requests).toHaveLength(2);
    expect(byId(await list(server)).main?.status).toBe('configured');
  });

  test('requests that come together share one pass', async () => {
    const release = Promise.withResolvers<void>();
    await using upstream = new UpstreamServer(async () => {
      await release.promise;
      return modelList();
    });
    await using server = await startTestServer({ file: openAiFile(upstream.url), clock: new FakeClock() });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: canary });
    const asked = Promise.all(Array.from({ length: 8 }, () => list(server, '?include=status')));
    await until(async () => upstream.requests.length === 1);
    release.resolve();
    for (const entries of await asked) expect(byId(entries).main?.status).toBe('connected');
    expect(upstream.requests).toHaveLength(1);
  });

  test('a connection that fails is an entry that says so', async () => {
    await using upstream = new UpstreamServer(({ authorization }) =>
      Response.json({ error: { message: `wrong key: ${authorization}` } }, { status: 401 }),
    );
    const file = openAiFile(
      upstream.url,
      `
  nobody: {kind: inference, inference: {provider: ollama, url: "http://127.0.0.1:1"}}
  unset: {kind: inference, inference: {provider: openai, api_key: "\${secret:never.stored}"}}
  ledger: {kind: database, database: {provider: postgres, dsn: "postgres://x:\${secret:never.stored}@localhost/d", tables: [t]}}
  files: {kind: external_io, external_io: {protocol: filesystem, root: /nowhere/at/all}}
  web: {kind: external_io, external_io: {protocol: http}}
`,
    );
    await using server = await startTestServer({ file, clock: new FakeClock() });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: canary });
    const configured = byId(await list(server));
    for (const id of ['unset', 'ledger']) {
      const error = expect.stringContaining('the secret "never.stored"');
      expect(configured[id]).toMatchObject({ status: 'error', error });
    }
    const all = byId(await list(server, '?include=status'));
    const told = Object.entries(all).map(([id, { status, error }]) => [id, status, error]);
    expect(told).toContainEqual([
      'main',
      'error',
      'the provider "openai" answered HTTP 401: wrong key: Bearer (secret)',
    ]);
    expect(told).toContainEqual(['nobody', 'error', expect.stringContaining('"ollama" could not be reached')]);
    expect(told).toContainEqual(['files', 'error', 'its root does not exist']);
    expect(told).toContainEqual(['web', 'configured', null]);
    expect(told).toContainEqual(['local-inference', 'connected', null]);
    expect(server.logLines.join('')).not.toContain(canary);
  });

  test('a service that does not answer is given two seconds', async () => {
    await using silent = new UpstreamServer(() => new Promise<Response>(() => undefined));
    const clock = new FakeClock();
    const file = `connections: {silent: {kind: inference, inference: {provider: ollama, url: "${silent.url}"}}}`;
    await using server = await startTestServer({ file, clock });
    const asked = list(server, '?include=status');
    await until(async () => silent.requests.length === 1);
    await clock.advance(2_000);
    expect(byId(await asked).silent).toMatchObject({
      status: 'error',
      error: 'the provider "ollama" did not answer within 2000 ms',
    });
  });

  test('an object store is asked with its own keys', async () => {
    const listing = '<ListBucketResult><Name>b</Name><KeyCount>0</KeyCount></ListBucketResult>';
    const refusal = '<Error><Code>AccessDenied</Code><Message>no</Message></Error>';
    const headers = { 'content-type': 'application/xml' };
    const answers = [new Response(listing, { headers }), new Response(refusal, { status: 403, headers })];
    await using store = new UpstreamServer(() => answers.shift() ?? new Response(null, { status: 500 }));
    const file = `
connections:
  store:
    kind: external_io
    external_io:
      protocol: s3
      endpoint: ${store.url}
      region: eu-west-1
      buckets: [b]
      access_key_id: key-id
      secret_access_key: \${secret:store}
`;
    await using server = await startTestServer({ file, clock: new FakeClock() });
    expect(byId(await list(server)).store).toMatchObject({ status: 'error' });
    await server.send('PUT', '/db/v1/secrets/store', { value: canary });
    expect(byId(await list(server, '?include=status')).store).toMatchObject({
      status: 'connected',
      external_io: { protocol: 's3', endpoint: store.url, buckets: ['b'] },
    });
    expect(store.requests[0]?.authorization).toContain('Credential=key-id/');
    const again = await list(server, '?include=status&refresh=true');
    expect(byId(again).store).toMatchObject({
      status: 'error',
      error: 'the object store refuses the bucket "b", or cannot be reached',
    });
    expect(server.logLines.join('')).not.toContain(canary);
  });

  test('an object store is connected when all of its buckets answer below its prefix', async () => {
    const listing = '<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>';
    const headers = { 'content-type': 'application/xml' };
    let isThere = false;
    await using store = new UpstreamServer(({ path }) =>
      isThere || !path.startsWith('/second') ? new Response(listing, { headers }) : new Response('', { status: 404 }),
    );
    const io = `{protocol: s3, endpoint: "${store.url}", buckets: [first, second], prefix: /backups, access_key_id: a, secret_access_key: s}`;
    await using server = await startTestServer({
      file: `connections: {store: {kind: external_io, external_io: ${io}}}`,
    });
    expect(byId(await list(server, '?include=status')).store).toMatchObject({
      status: 'error',
      error: 'the object store refuses the bucket "second", or cannot be reached',
    });
    isThere = true;
    expect(byId(await list(server, '?include=status&refresh=true')).store).toMatchObject({ status: 'connected' });
    const asked = store.requests.map(({ path, search }) => [path, new URLSearchParams(search).get('prefix')]);
    const both = ['/first/', '/second/'].map((path) => [path, 'backups/']);
    expect(asked.sort()).toEqual([...both, ...both].sort());
  });

  test('an unknown expansion is refused', async () => {
    await using server = await startTestServer();
    const { status, body } = await server.send('GET', '/db/v1/connections?include=status,secrets');
    expect([status, body.code]).toEqual([400, 'invalid_request']);
  });
});

async function invoke(server: TestServer, connection: string, operation: string, body: unknown): Promise<Answer> {
  return await server.send('POST', `/db/v1/connections/${connection}/inference/${operation}`, body);
}

describe('an operation through a connection', () => {
  const messages = [{ role: 'user', content: 'hello' }];

  test('is done by this server itself', async () => {
    await using server = await startTestServer();
    const body = { text: 'one two three four', config: { model: 'fixed', target_tokens: 2 } };
    const answer = await invoke(server, 'local-inference', 'chunk', body);
    expect(answer).toMatchObject({ status: 200, body: { object: 'list', model: 'fixed' } });
    const direct = await server.send('POST', '/ai/v1/chunk', body);
    expect(answer.body).toEqual({ ...direct.body, cache_hit: false });
    const wrong = await invoke(server, 'local-inference', 'chunk', {});
    expect([wrong.status, (wrong.body as { code: string }).code]).toEqual([400, 'invalid_request']);
  });

  test('is asked of the provider, with its key and the only model', async () => {
    await using service = new ModelService('openai');
    await using server = await startTestServer({ file: openAiFile(service.url) });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: canary });
    const embedded = await invoke(server, 'main', 'embed', { input: ['a', 'b'] });
    expect(embedded).toMatchObject({ status: 200, body: { model: 'small', summary: { succeeded: 2 } } });
    expect(await invoke(server, 'main', 'embeddings', { input: 'a', model: 'large' })).toMatchObject({ status: 200 });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: 'rotated' });
    const generated = await invoke(server, 'main', 'generate', { messages });
    expect(generated).toMatchObject({ status: 200, body: { choices: [{ message: { content: 'You said: hello' } }] } });
    const asked = service.seen.map(({ path, headers, body }) => [path, headers.get('authorization'), body.model]);
    expect(asked).toEqual([
      ['/v1/embeddings', `Bearer ${canary}`, 'small'],
      ['/v1/embeddings', `Bearer ${canary}`, 'large'],
      ['/v1/chat/completions', 'Bearer rotated', 'small'],
    ]);
  });

  test('goes to a provider without regions whatever region, project and location the connection is said to have', async () => {
    await using service = new ModelService('openai');
    const place = 'region: eu, project_id: p, location: l';
    const file = `connections: {main: {kind: inference, inference: {provider: openai, url: "${service.url}/v1", ${place}}}}`;
    await using server = await startTestServer({ file });
    const [, main] = await list(server);
    expect(main?.inference).toMatchObject({ region: 'eu', project_id: 'p', location: 'l' });
    expect(await invoke(server, 'main', 'embed', { model: 'm', input: 'a' })).toMatchObject({ status: 200 });
  });

  test('goes to Ollama, to AWS Bedrock, and to another server like this one', async () => {
    await using ollama = new ModelService('ollama');
    await using bedrock = new ModelService('bedrock');
    await using other = new UpstreamServer(() => Response.json({ object: 'list', data: [{ index: 0, score: 0.5 }] }));
    const file = `
connections:
  local: {kind: inference, inference: {provider: ollama, url: "${ollama.url}/"}}
  cloud: {kind: inference, inference: {provider: bedrock, url: "${bedrock.url}", region: eu-west-1, api_key: k}}
  other: {kind: inference, inference: {provider: service, url: "${other.url}/ai/v1", names: [m]}}
`;
    await using server = await startTestServer({ file });
    for (const connection of ['local', 'cloud']) {
      const answer = await invoke(server, connection, 'generate', { model: 'm', messages });
      expect(answer).toMatchObject({ status: 200, body: { choices: [{ message: { content: 'You said: hello' } }] } });
    }
    expect(await invoke(server, 'cloud', 'embed', { model: 'amazon.titan-embed', input: 'a' })).toMatchObject({
      status: 200,
    });
    expect(await invoke(server, 'other', 'rerank', { query: 'q', prompts: ['p'] })).toMatchObject({
      status: 200,
      body: { data: [{ index: 0, score: 0.5 }] },
    });
    expect(await invoke(server, 'other', 'chunk', { text: 'a' })).toMatchObject({ status: 200 });
    expect(other.requests.map(({ path }) => path)).toEqual(['/ai/v1/rerank', '/ai/v1/chunk']);
    const modelless = await invoke(server, 'local', 'generate', { messages });
    expect(modelless).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    expect((modelless.body as { message: string }).message).toStartWith('member "model"');
  });

  test('goes through a provider with a protocol of its own', async () => {
    const file = 'connections: {words: {kind: inference, inference: {provider: mock, names: [m]}}}';
    await using server = await startTestServer({ file });
    const embedded = await invoke(server, 'words', 'embed', { input: ['a b', 'b c'], dimensions: 8 });
    expect(embedded).toMatchObject({ status: 200, body: { model: 'm', summary: { succeeded: 2 } } });
    const generated = await invoke(server, 'words', 'generate', { messages });
    expect(generated).toMatchObject({ status: 200, body: { choices: [{ message: { content: 'hello' } }] } });
  });

  test('streams the events of a generation to their end', async () => {
    await using service = new ModelService('openai');
    await using server = await startTestServer({ file: openAiFile(service.url) });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: canary });
    const answer = await invoke(server, 'main', 'generate', { messages, stream: true });
    expect(answer.headers.get('content-type')).toStartWith('text/event-stream');
    const events = String(answer.body)
      .trim()
      .split('\n\n')
      .map((event) => event.replace('data: ', ''));
    expect(events.pop()).toBe('[DONE]');
    const chunks = events.map((event) => JSON.parse(event) as { choices: { delta: { content?: string } }[] });
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('You said: hello');
  });

  test('shows why a model elsewhere does not answer, whole and in pieces', async () => {
    await using service = new ModelService('openai');
    await using server = await startTestServer({ file: openAiFile(service.url) });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: canary });
    const message = { content: null, refusal: 'I do not say that.' };
    const choice = { index: 0, message, finish_reason: 'content_filter' };
    service.always = () => Response.json({ choices: [choice], usage: {} });
    const whole = await invoke(server, 'main', 'generate', { messages });
    expect(whole.body).toMatchObject({ choices: [{ message, finish_reason: 'content_filter' }] });
    const chunk = JSON.stringify({ choices: [{ ...choice, delta: message }] });
    service.always = () => new Response(`data: ${chunk}\n\ndata: [DONE]\n\n`);
    const pieces = await invoke(server, 'main', 'generate', { messages, stream: true });
    expect(pieces.body).toContain('"delta":{"refusal":"I do not say that."}');
    expect(pieces.body).toContain('"finish_reason":"content_filter"');
  });

  test('a stream that breaks ends with an error and without [DONE]', async () => {
    await using service = new ModelService('openai');
    await using server = await startTestServer({ file: openAiFile(service.url) });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: canary });
    const piece = JSON.stringify({ choices: [{ index: 0, delta: { content: 'You' } }] });
    service.always = () => new Response(`data: ${piece}\n\n`);
    const { body } = await invoke(server, 'main', 'generate', { messages, stream: true });
    expect(body).toContain('"content":"You"');
    expect(body).toContain('\n\nevent: error\ndata: upstream_failed: ');
    expect(body).not.toContain('[DONE]');
  });

  test('is refused without the capability, for an unknown connection or operation, and by what cannot do it', async () => {
    const file = `
connections:
  few: {kind: inference, capabilities: [models.embeddings], inference: {provider: openai}}
  much: {kind: inference, capabilities: [models.rerank], inference: {provider: openai}}
  files: {kind: external_io, capabilities: [models.embed], external_io: {protocol: http}}
`;
    await using server = await startTestServer({ file });
    const refused: [connection: string, operation: string, status: number, code: string][] = [
      ['few', 'generate', 403, 'forbidden'],
      ['files', 'embed', 403, 'forbidden'],
      ['much', 'rerank', 400, 'model_not_supported'],
      ['few', 'dance', 400, 'invalid_request'],
      ['none', 'embed', 404, 'connection_not_found'],
    ];
    for (const [connection, operation, status, code] of refused) {
      const answer = await invoke(server, connection, operation, { model: 'm', input: 'a' });
      expect([connection, operation, answer.status, (answer.body as { code: string }).code]).toEqual([
        connection,
        operation,
        status,
        code,
      ]);
    }
  });

  test('says what the provider says, and no key', async () => {
    await using service = new ModelService('openai');
    await using server = await startTestServer({ file: openAiFile(service.url) });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: canary });
    service.next.push(
      () => Response.json({ error: { message: `bad input for ${canary}` } }, { status: 400 }),
      () => Response.json({ error: { message: `wrong key ${canary}` } }, { status: 401 }),
      () => new Response(null, { status: 307, headers: { location: 'http://127.0.0.1:1/elsewhere' } }),
    );
    const told: unknown[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      const { status, body } = await invoke(server, 'main', 'generate', { messages });
      const { code, message } = body as Record<string, unknown>;
      told.push([status, code, message]);
    }
    expect(told).toEqual([
      [400, 'invalid_request', 'the provider "openai" answered HTTP 400: bad input for (secret)'],
      [502, 'upstream_refused', 'the provider "openai" answered HTTP 401: wrong key (secret)'],
      [502, 'upstream_refused', 'the provider "openai" answered HTTP 307'],
    ]);
    expect(server.logLines.join('')).not.toContain(canary);
  });

  test('a secret goes to the hosts that it is bound to only', async () => {
    await using upstream = new UpstreamServer(modelList);
    await using server = await startTestServer({ file: openAiFile(upstream.url) });
    await server.send('PUT', '/db/v1/secrets/main.key', { value: canary, hosts: ['api.openai.com'] });
    expect(byId(await list(server)).main).toMatchObject({
      status: 'error',
      error: 'the secret "main.key" may not be sent to the host "127.0.0.1"',
    });
    const { status, body } = await invoke(server, 'main', 'embed', { input: 'a' });
    expect([status, (body as { code: string }).code]).toEqual([400, 'host_not_allowed']);
    expect(upstream.requests).toEqual([]);
  });
});
