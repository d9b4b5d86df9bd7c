import { describe, expect, test } from 'bun:test';
import { generationRequest } from '../../../../src/inference/generation/generation-request.ts';
import { textMessage } from '../../../../src/inference/generation/prompt/chat-message.ts';
import { signedHeaders } from '../../../../src/inference/providers/remote/sign-request.ts';
import { type Clock, systemClock } from '../../../../src/lib/clock.ts';
import { readProviderConfig } from '../../../../src/provider-config/provider-config.ts';
import {
  ModelService,
  openProviders,
  providerCall,
  type ServiceProtocol,
} from '../../../support/providers/model-service.ts';

const call = providerCall();
const secretKey = `\${secret:key}`;
const awsId = `\${AWS_ID}`;
const awsSecret = `\${AWS_SECRET}`;

const uses: Record<ServiceProtocol, object> = {
  openai: { provider: 'openai', api_key: secretKey },
  ollama: { provider: 'ollama' },
  cohere: { provider: 'cohere', api_key: secretKey },
  bedrock: {
    provider: 'bedrock',
    region: 'eu-west-1',
    access_key_id: awsId,
    secret_access_key: awsSecret,
    model: 'amazon.titan-embed-text-v2:0',
  },
};
const credentials = {
  [secretKey]: 'sk-very-secret',
  [awsId]: 'AKIDEXAMPLE',
  [awsSecret]: 'wJalr-secret',
};

function configFor(protocol: ServiceProtocol, service: ModelService, more: object = {}) {
  const url = protocol === 'openai' ? `${service.url}/v1` : service.url;
  return readProviderConfig({ model: 'm', ...uses[protocol], url, ...more }, 'embed', 'embedder');
}

function embedderOf(protocol: ServiceProtocol, service: ModelService, more: object = {}) {
  return openProviders({ credentials }).embedder(configFor(protocol, service, more));
}

describe.each(['openai', 'ollama', 'cohere', 'bedrock'] as const)('the protocol of %s', (protocol) => {
  test('embeds texts in batches, in their order', async () => {
    await using service = new ModelService(protocol);
    const texts = Array.from({ length: 300 }, (_, at) => `text number ${at}`);
    const embedder = embedderOf(protocol, service);
    const { vectors, faults, tokens, dimension } = await embedder.embed(texts, 'RETRIEVAL_DOCUMENT', call);
    const expected = (await service.vectorsOf(texts)).map((vector) => Float32Array.from(vector));
    expect([...vectors]).toEqual(expected);
    expect([faults, dimension]).toEqual([[], 64]);
    expect(tokens).toBeGreaterThan(protocol === 'cohere' ? 0 : 300);
    expect(service.texts.toSorted()).toEqual(texts.toSorted());
    const requests = { openai: 2, ollama: 5, cohere: 4, bedrock: 300 };
    expect(service.seen).toHaveLength(requests[protocol]);
  });

  test('asks for the length that was configured', async () => {
    await using service = new ModelService(protocol);
    const embedder = embedderOf(protocol, service, { dimensions: 16 });
    const { vectors } = await embedder.embed(['a b'], 'RETRIEVAL_QUERY', call);
    expect(vectors[0]).toHaveLength(16);
  });

  test('expands its credentials for each request, and sends them nowhere but in their header', async () => {
    await using service = new ModelService(protocol);
    await embedderOf(protocol, service).embed(['a'], 'RETRIEVAL_DOCUMENT', call);
    const [{ headers, text, path }] = service.seen as [ModelService['seen'][0]];
    const authorization = headers.get('authorization');
    if (protocol === 'ollama') expect(authorization).toBeNull();
    else if (protocol === 'bedrock') expect(authorization).toContain('Credential=AKIDEXAMPLE/');
    else expect(authorization).toBe('Bearer sk-very-secret');
    expect(text + path).not.toMatch(/secret/);
  });
});

describe('an embedder of another service', () => {
  test('asks for a question to be embedded as one where the protocol can say so', async () => {
    await using service = new ModelService('cohere');
    const embedder = embedderOf('cohere', service);
    await embedder.embed(['a'], 'RETRIEVAL_QUERY', call);
    await embedder.embed(['a'], 'RETRIEVAL_DOCUMENT', call);
    expect(service.seen.map(({ body }) => body.input_type)).toEqual(['search_query', 'search_document']);
  });

  test('finds the texts that the service refuses, and embeds the others', async () => {
    await using service = new ModelService('openai');
    const bad = ['text 7', 'text 40', 'text 41'];
    service.always = ({ body }) =>
      body.input.some((text: string) => bad.includes(text))
        ? Response.json({ error: { message: 'maximum context length is 8192 tokens' } }, { status: 400 })
        : undefined;
    const texts = Array.from({ length: 64 }, (_, at) => `text ${at}`);
    const { vectors, faults } = await embedderOf('openai', service).embed(texts, 'RETRIEVAL_DOCUMENT', call);
    expect(faults.map(({ index, error }) => [index, error.code])).toEqual(
      [7, 40, 41].map((index) => [index, 'context_length_exceeded']),
    );
    expect(vectors.filter((vector) => vector === undefined)).toHaveLength(3);
    // 3 x 2 x log2(64), the first one and a proof that the service works at all.
    expect(service.seen.length).toBeLessThan(40);
  });

  test('blames no text where the service refuses them all', async () => {
    await using service = new ModelService('openai');
    service.always = () => Response.json({ error: { message: 'this model takes no dimensions' } }, { status: 400 });
    const texts = Array.from({ length: 100 }, (_, at) => `text ${at}`);
    const embedded = embedderOf('openai', service, { dimensions: 3 }).embed(texts, 'RETRIEVAL_DOCUMENT', call);
    await expect(embedded).rejects.toMatchObject({ code: 'upstream_refused' });
    expect(service.seen).toHaveLength(2);
  });

  test.each([
    ['of another length', [[1, 2, 3]], 'a vector of 3 numbers; 2 were asked for'],
    ['with a number that is not finite', [['NaN', 1]], 'a number that is not finite'],
    ['that 32 bits cannot hold', [[1e39, 1]], 'a number that is not finite'],
    ['of no numbers', [[]], 'no vector for this text'],
    ['of nothing', [null], 'no vector for this text'],
  ])('takes a vector %s for a fault of the text', async (_name, embeddings, sentence) => {
    await using service = new ModelService('ollama');
    service.always = () => Response.json({ embeddings });
    const embedded = await embedderOf('ollama', service, { dimensions: 2 }).embed(['a'], 'RETRIEVAL_DOCUMENT', call);
    expect(embedded.vectors).toEqual([undefined]);
    expect(embedded.faults).toMatchObject([{ index: 0, error: { code: 'inference_failed' } }]);
    expect(embedded.faults[0]?.error.message).toContain(sentence);
  });

  test.each([
    ['a key that is refused', () => new Response('{}', { status: 401 }), 'upstream_refused', 1],
    ['an address that is not there', () => new Response('{}', { status: 404 }), 'upstream_refused', 2],
    ['a redirect', () => Response.redirect('http://127.0.0.1:1/'), 'upstream_refused', 1],
    ['fewer vectors than texts', () => Response.json({ embeddings: [] }), 'upstream_failed', 3],
    ['what is not JSON', () => new Response('<html>'), 'upstream_failed', 3],
    ['an overload', () => new Response('', { status: 503 }), 'upstream_failed', 3],
    ['a limit', () => new Response('', { status: 429, headers: { 'retry-after': '30' } }), 'upstream_failed', 1],
  ])('takes %s for a fault of the service', async (_name, answer, code, requests) => {
    await using service = new ModelService('ollama');
    service.always = answer;
    const embedded = embedderOf('ollama', service).embed(['a', 'b'], 'RETRIEVAL_DOCUMENT', call);
    await expect(embedded).rejects.toMatchObject({ code });
    expect(service.seen).toHaveLength(requests);
  });

  test('goes on after a storm that passes', async () => {
    await using service = new ModelService('openai');
    service.next.push(
      () => new Response('', { status: 500 }),
      () => new Response('', { status: 429, headers: { 'retry-after-ms': '5' } }),
    );
    const { vectors } = await embedderOf('openai', service).embed(['a'], 'RETRIEVAL_DOCUMENT', call);
    expect([vectors.length, service.seen.length]).toEqual([1, 3]);
  });

  test('that hangs fails within its time, and a caller who leaves ends its request', async () => {
    await using service = new ModelService('openai');
    const hung = Promise.withResolvers<Response>();
    service.always = () => hung.promise;
    const entries = { openai: { timeoutMs: 100 } };
    // Three attempts, with pauses in between: time passes twenty times as fast.
    const clock: Clock = { ...systemClock, after: (delayMs, callback) => systemClock.after(delayMs / 20, callback) };
    const embedder = openProviders({ credentials, clock, entries }).embedder(configFor('openai', service));
    await expect(embedder.embed(['a'], 'RETRIEVAL_DOCUMENT', call)).rejects.toThrow('did not answer within 100 ms');
    const stop = new AbortController();
    const patient = embedderOf('openai', service).embed(['a'], 'RETRIEVAL_DOCUMENT', providerCall(stop.signal));
    stop.abort(new Error('left'));
    await expect(patient).rejects.toThrow('left');
    hung.resolve(new Response(''));
  });

  test('reads no more of an answer than it may have', async () => {
    await using service = new ModelService('openai');
    const piece = new Uint8Array(1024 * 1024).fill(0x20);
    service.always = () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(piece),
        }),
      );
    const embedded = embedderOf('openai', service).embed(['a'], 'RETRIEVAL_DOCUMENT', call);
    await expect(embedded).rejects.toThrow('answered more than 67108864 bytes');
  }, 120_000);

  test('shows no key in its errors, also where the service repeats it', async () => {
    await using service = new ModelService('openai');
    service.always = ({ headers }) =>
      Response.json({ error: { message: `wrong key ${headers.get('authorization')}` } }, { status: 401 });
    const error = await embedderOf('openai', service)
      .embed(['a'], 'RETRIEVAL_DOCUMENT', call)
      .catch((thrown: unknown) => thrown);
    expect(String(error)).toContain('wrong key Bearer (secret)');
    expect(Bun.inspect(error, { depth: 10 })).not.toContain('sk-very-secret');
  });
});

test('a request that is to fail with one of its texts says which', async () => {
  await using service = new ModelService('openai');
  const provider = openProviders({ credentials }).provider(configFor('openai', service));
  const embed = (items: string[]) => provider.embed({ model: 'm', items }, call);
  await expect(embed(['a', ''])).rejects.toMatchObject({ message: 'input 1: the input is empty' });
  await expect(embed([''])).rejects.toMatchObject({ message: 'the input is empty' });
  service.always = ({ body }) =>
    body.input.includes('long') ? Response.json({ error: { message: 'too long' } }, { status: 400 }) : undefined;
  await expect(embed(['a', 'b', 'long'])).rejects.toMatchObject({
    code: 'context_length_exceeded',
    message: 'input 2: the provider "openai" answered HTTP 400: too long',
  });
});

test('counts that are none spoil neither an answer nor the counters of the provider', async () => {
  await using service = new ModelService('openai');
  const choices = [{ message: { content: 'a' } }];
  service.next.push(() => Response.json({ choices, usage: { prompt_tokens: '5', completion_tokens: -1 } }));
  const providers = openProviders({ credentials });
  const provider = providers.provider(configFor('openai', service));
  const request = generationRequest({ model: 'm', messages: [textMessage('user', 'hello')] });
  const [odd] = await provider.generate(request, call);
  expect([odd?.result.promptTokens, odd?.result.completionTokens]).toEqual([0, 0]);
  await provider.generate(request, call);
  expect(providers.states).toMatchObject([{ tokens: 8 }]);
});

test('vectors of different lengths are no answer to one request', async () => {
  await using service = new ModelService('ollama');
  service.always = () => Response.json({ embeddings: [[1], [1, 2]] });
  const providers = openProviders({ credentials });
  const embedded = providers.provider(configFor('ollama', service)).embed({ model: 'm', items: ['a', 'b'] }, call);
  await expect(embedded).rejects.toMatchObject({ code: 'upstream_failed' });
  const { vectors } = await providers
    .embedder(configFor('ollama', service))
    .embed(['a', 'b'], 'RETRIEVAL_DOCUMENT', call);
  expect(vectors.map((each) => (each as Float32Array).length)).toEqual([1, 2]);
});

test('a vector whose base64 is damaged is a fault of its text, not a shorter vector', async () => {
  await using service = new ModelService('openai');
  const whole = Buffer.from(Float32Array.of(1, 2).buffer).toString('base64');
  const data = [whole, `${whole.slice(0, 5)}*****${whole.slice(10)}`].map((embedding, index) => ({ index, embedding }));
  service.always = () => Response.json({ object: 'list', data, usage: { total_tokens: 2 } });
  const { vectors, faults } = await embedderOf('openai', service).embed(['a', 'b'], 'RETRIEVAL_DOCUMENT', call);
  expect(vectors[0]).toEqual(Float32Array.of(1, 2));
  expect([vectors[1], faults.map(({ index }) => index)]).toEqual([undefined, [1]]);
});

test('a server without the embedding route of Ollama is asked at that of OpenAI from then on', async () => {
  await using service = new ModelService('ollama');
  const vectors = await service.vectorsOf(['a', 'b']);
  service.always = ({ path }) =>
    path === '/v1/embeddings'
      ? Response.json({ data: vectors.map((embedding, index) => ({ index, embedding })) })
      : new Response('404 page not found', { status: 404 });
  const embedder = embedderOf('ollama', service);
  const embedded = await embedder.embed(['a', 'b'], 'RETRIEVAL_DOCUMENT', call);
  expect([...embedded.vectors]).toEqual(vectors.map((vector) => Float32Array.from(vector)));
  await embedder.embed(['a', 'b'], 'RETRIEVAL_DOCUMENT', call);
  expect(service.seen.map(({ path }) => path)).toEqual(['/api/embed', '/v1/embeddings', '/v1/embeddings']);
});

test('a model that Ollama does not have is not looked for elsewhere', async () => {
  await using service = new ModelService('ollama');
  service.always = () => Response.json({ error: 'model "m" not found, try pulling it first' }, { status: 404 });
  const embedded = embedderOf('ollama', service).embed(['a'], 'RETRIEVAL_DOCUMENT', call);
  await expect(embedded).rejects.toThrow('model "m" not found');
  expect(service.seen).toHaveLength(1);
});

describe('where requests may go', () => {
  test('is checked for every request: an address that is no longer allowed is not called', async () => {
    await using service = new ModelService('openai');
    let isAllowed = true;
    const providers = openProviders({ credentials, allowed: () => isAllowed });
    const embedder = providers.embedder(configFor('openai', service));
    await embedder.embed(['a'], 'RETRIEVAL_DOCUMENT', call);
    isAllowed = false;
    await expect(embedder.embed(['a'], 'RETRIEVAL_DOCUMENT', call)).rejects.toMatchObject({ code: 'host_not_allowed' });
    expect(() => providers.embedder(configFor('openai', service))).toThrow('is not allowed');
    expect(service.seen).toHaveLength(1);
  });

  test('the key of the operator goes to the address of the operator, and not to one that an index names', async () => {
    await using own = new ModelService('openai');
    await using other = new ModelService('openai');
    const entries = { openai: { apiKey: 'sk-operator', url: `${own.url}/v1` } };
    const providers = openProviders({ entries });
    const config = (url?: string) =>
      readProviderConfig({ provider: 'openai', model: 'm', ...(url && { url }) }, 'embed', 'embedder');
    await providers.embedder(config()).embed(['a'], 'RETRIEVAL_DOCUMENT', call);
    await providers.embedder(config(`${other.url}/v1`)).embed(['a'], 'RETRIEVAL_DOCUMENT', call);
    expect(own.seen[0]?.headers.get('authorization')).toBe('Bearer sk-operator');
    expect(other.seen[0]?.headers.get('authorization')).toBeNull();
  });

  test('a request to AWS without a key of its own uses none at an address that an index names', async () => {
    await using service = new ModelService('bedrock');
    const { access_key_id: _id, secret_access_key: _secret, ...unsigned } = uses.bedrock as Record<string, unknown>;
    const config = readProviderConfig({ ...unsigned, url: service.url }, 'embed', 'embedder');
    const embedder = openProviders({ credentials }).embedder(config);
    await expect(embedder.embed(['a'], 'RETRIEVAL_DOCUMENT', call)).rejects.toThrow('there is no key for this address');
    expect(service.seen).toEqual([]);
  });
});

test('a provider of which nothing says where it is does not become this server; its entry may say the region', () => {
  const { region: _region, ...elsewhere } = uses.bedrock as Record<string, unknown>;
  const config = readProviderConfig(elsewhere, 'embed', 'embedder');
  expect(() => openProviders({ credentials }).provider(config)).toThrow('name the region of its models');
  const entries = { bedrock: { region: 'eu-central-1' } };
  expect(() => openProviders({ credentials, entries }).provider(config)).not.toThrow();
});

describe('the state of providers', () => {
  test('tells requests, tokens and the breaker, without addresses and keys', async () => {
    await using service = new ModelService('openai');
    const providers = openProviders({ credentials });
    await providers.embedder(configFor('openai', service)).embed(['one two'], 'RETRIEVAL_DOCUMENT', call);
    await providers.embedder(configFor('openai', service, { model: 'n' })).embed(['three'], 'RETRIEVAL_QUERY', call);
    expect(providers.states).toEqual([
      {
        provider: 'openai',
        requests: 2,
        failures: 0,
        retries: 0,
        tokens: 3,
        waits: 0,
        waitedMs: 0,
        breaker: 'closed',
      },
    ]);
  });
});

describe.each(['openai', 'ollama', 'bedrock'] as const)('a generation by the protocol of %s', (protocol) => {
  const request = generationRequest({ model: 'm', messages: [textMessage('user', 'hello')], tokensMax: 9 });

  test('answers whole', async () => {
    await using service = new ModelService(protocol);
    const provider = openProviders({ credentials }).provider(configFor(protocol, service));
    const [output] = await provider.generate(request, call);
    expect(output).toMatchObject({
      deltas: [{ kind: 'content', text: 'You said: hello' }],
      finish: 'stop',
      result: { promptTokens: 5, completionTokens: 3 },
    });
  });

  test('answers in pieces', async () => {
    await using service = new ModelService(protocol);
    const provider = openProviders({ credentials }).provider(configFor(protocol, service));
    let text = '';
    const [output] = await provider.generate(request, {
      ...call,
      onPiece(_choice, deltas) {
        for (const delta of deltas) if (delta.kind === 'content') text += delta.text;
      },
    });
    expect([text, output?.deltas, output?.result.completionTokens]).toEqual(['You said: hello', [], 3]);
  });
});

test('a stream that ends early is an error, and what it gave is not given again', async () => {
  await using service = new ModelService('openai');
  service.always = () => new Response('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n');
  const provider = openProviders({ credentials }).provider(configFor('openai', service));
  const request = generationRequest({ model: 'm', messages: [textMessage('user', 'hello')] });
  const pieces: unknown[] = [];
  const generated = provider.generate(request, { ...call, onPiece: (...piece) => pieces.push(piece) });
  await expect(generated).rejects.toMatchObject({ code: 'upstream_failed' });
  expect([pieces.length, service.seen.length]).toEqual([1, 1]);
});

describe('an error that comes without the status of one', () => {
  const request = generationRequest({ model: 'm', messages: [textMessage('user', 'hello')] });
  const generate = async (protocol: 'openai' | 'ollama', answer: string, isStreamed: boolean) => {
    await using service = new ModelService(protocol);
    service.always = () => new Response(answer);
    const provider = openProviders({ credentials }).provider(configFor(protocol, service));
    const onPiece = isStreamed ? { onPiece: () => undefined } : {};
    return await provider.generate(request, { ...call, ...onPiece }).catch((error: unknown) => error);
  };

  test.each([
    [
      'openai',
      'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"error":{"message":"key sk-very-secret is bad"}}\n\n',
    ],
    ['ollama', '{"message":{"content":"a"}}\n{"error":"key sk-very-secret is bad"}\n'],
  ] as const)('in a stream of %s is told with its reason, without keys', async (protocol, answer) => {
    const error = await generate(protocol, answer, true);
    expect(error).toMatchObject({ code: 'upstream_failed' });
    expect(String(error)).toContain(`the provider "${protocol}" answered an error: key (secret) is bad`);
  });

  test.each([
    [{ code: 400, message: 'no such member' }, 'invalid_request'],
    [{ code: 'context_length_exceeded', message: 'too much' }, 'context_length_exceeded'],
    [{ code: 402, status: 'PAYMENT', message: 'no credits' }, 'upstream_refused'],
    [{ code: 502, message: 'overloaded' }, 'upstream_failed'],
  ])('has the code that its status would have: %p', async (told, code) => {
    const whole = JSON.stringify({ error: told });
    for (const [answer, isStreamed] of [
      [`data: ${whole}\n\n`, true],
      [whole, false],
    ] as const) {
      const error = await generate('openai', answer, isStreamed);
      expect([error, String(error)]).toMatchObject([{ code }, expect.stringContaining(told.message)]);
    }
  });

  test('is not seen in a piece that says there is none', async () => {
    const piece = '{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"error":null}';
    expect(await generate('openai', `data: ${piece}\n\ndata: [DONE]\n\n`, true)).toMatchObject([{ finish: 'stop' }]);
  });

  test.each([
    ['whole', '{"choices":[{"message":{"content":[{"type":"text","text":"a"}]}}]}', false],
    ['in pieces', 'data: {"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}\n\n', true],
    ['with calls that are no list', 'data: {"choices":[{"delta":{"tool_calls":{}}}]}\n\n', true],
  ])('is one where the members are none of the protocol, %s', async (_name, answer, isStreamed) => {
    const error = await generate('openai', answer, isStreamed);
    expect(error).toMatchObject({ code: 'upstream_failed' });
    expect(String(error)).toContain('does not have the shape of its protocol');
  });
});

test('thoughts are thoughts under the name that OpenRouter gives them, too', async () => {
  await using service = new ModelService('openai');
  service.always = () => Response.json({ choices: [{ message: { reasoning: 'hm', content: 'a' } }] });
  const provider = openProviders({ credentials }).provider(configFor('openai', service));
  const [output] = await provider.generate(
    generationRequest({ model: 'm', messages: [textMessage('user', 'hello')] }),
    call,
  );
  expect(output?.deltas).toEqual([
    { kind: 'reasoning', text: 'hm' },
    { kind: 'content', text: 'a' },
  ]);
});

test('a hosted reranker scores texts in their order', async () => {
  await using service = new ModelService('cohere');
  const provider = openProviders({ credentials }).provider(configFor('cohere', service));
  const request = {
    model: 'm',
    query: 'red apples',
    texts: ['naval law', 'apples', 'red apples'],
    truncate: undefined,
  };
  const { scores } = await provider.rerank(request, call);
  expect([...scores]).toEqual([0, 0.5, 1]);
});

test('a hosted reranker is told how much of a text to read, and is not asked to cut at the beginning', async () => {
  await using service = new ModelService('cohere');
  const provider = openProviders({ credentials }).provider(configFor('cohere', service));
  const request = { model: 'm', query: 'a', texts: ['a'] };
  await provider.rerank({ ...request, truncate: 'end', textTokensMax: 7 }, call);
  expect(service.seen[0]?.body.max_tokens_per_doc).toBe(7);
  await expect(provider.rerank({ ...request, truncate: 'start' }, call)).rejects.toThrow('truncate: the provider');
  expect(service.seen).toHaveLength(1);
});

test('a server like this one is told how much of a text its reranker is to read', async () => {
  await using service = new ModelService('openai');
  service.always = () => Response.json({ results: [1, 0].map((index) => ({ index, relevance_score: index / 2 })) });
  const config = readProviderConfig({ provider: 'service', model: 'm', url: service.url }, 'rerank', 'reranker');
  const request = { model: 'm', query: 'a', texts: ['a', 'b'], truncate: 'end', textTokensMax: 7 } as const;
  const { scores } = await openProviders({ credentials }).provider(config).rerank(request, call);
  expect([...scores]).toEqual([0, 0.5]);
  expect(service.seen[0]).toMatchObject({
    path: '/ai/v1/rerank',
    body: { documents: ['a', 'b'], max_tokens_per_doc: 7 },
  });
});

describe('several answers, each by a request of its own,', () => {
  const request = generationRequest({ model: 'm', messages: [textMessage('user', 'hello')], choices: 2 });

  test('are not the same for a seed', async () => {
    await using service = new ModelService('ollama');
    const provider = openProviders({ credentials }).provider(configFor('ollama', service));
    await provider.generate({ ...request, sampling: { ...request.sampling, seed: 5 } }, call);
    expect(service.seen.map(({ body }) => body.options.seed).toSorted()).toEqual([5, 6]);
  });

  test.each(['ollama', 'bedrock'] as const)('end together where one fails: %s', async (protocol) => {
    await using service = new ModelService(protocol);
    const hung = Promise.withResolvers<Response>();
    const left = Promise.withResolvers<void>();
    service.next.push(({ signal }) => {
      signal.addEventListener('abort', () => left.resolve());
      return hung.promise;
    });
    service.always = () => Response.json({ message: 'no' }, { status: 400 });
    const provider = openProviders({ credentials }).provider(configFor(protocol, service));
    await expect(provider.generate(request, call)).rejects.toMatchObject({ code: 'invalid_request' });
    await left.promise;
    hung.resolve(new Response(''));
  });
});

describe('a sparse vector of another service', () => {
  const embed = async (embedding: object) => {
    await using service = new ModelService('openai');
    service.always = () => Response.json({ data: [{ index: 0, embedding }] });
    const { vectors, faults } = await embedderOf('openai', service).embed(['a'], 'RETRIEVAL_DOCUMENT', call);
    return faults[0]?.error.message ?? vectors[0];
  };

  test('is put in order, without what is zero', async () => {
    expect(await embed({ indices: [9, 2, 4], values: [0.5, 1, 0] })).toEqual({
      indices: Uint32Array.of(2, 9),
      values: Float32Array.of(1, 0.5),
    });
  });

  test.each([
    ['an index twice', { indices: [1, 1], values: [1, 2] }],
    ['a value that 32 bits cannot hold', { indices: [1], values: [1e39] }],
    ['more indices than values', { indices: [1, 2], values: [1] }],
    ['no values', { indices: [1] }],
    ['an index that is none', { indices: [1.5], values: [1] }],
  ])('with %s is a fault of its text', async (_name, embedding) => {
    expect(await embed(embedding)).toContain('gave a sparse vector that');
  });
});

// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html: `post-vanilla` of the test suite.
test('requests are signed as the test suite of AWS Signature Version 4 has it', async () => {
  const headers = await signedHeaders(
    {
      url: new URL('https://example.amazonaws.com/'),
      body: '',
      region: 'us-east-1',
      service: 'service',
      headers: {},
      nowMs: Date.UTC(2015, 7, 30, 12, 36, 0),
    },
    {
      accessKeyId: 'AKIDEXAMPLE',
      secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
      sessionToken: undefined,
    },
  );
  expect(headers.authorization).toBe(
    'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ' +
      'SignedHeaders=host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  );
});
