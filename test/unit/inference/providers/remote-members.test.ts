import { describe, expect, test } from 'bun:test';
import { type GenerationRequest, generationRequest } from '../../../../src/inference/generation/generation-request.ts';
import type { OutputDelta } from '../../../../src/inference/generation/output-parser.ts';
import { textMessage } from '../../../../src/inference/generation/prompt/chat-message.ts';
import { chatBody } from '../../../../src/inference/providers/remote/openai-chat-request.ts';
import type { ServiceError } from '../../../../src/protocol/service-error.ts';
import { readProviderConfig } from '../../../../src/provider-config/provider-config.ts';
import { ModelService, openProviders, providerCall } from '../../../support/providers/model-service.ts';

const call = providerCall();
const key = { access_key_id: `\${AWS_ID}`, secret_access_key: `\${AWS_SECRET}` };
const credentials = { [key.access_key_id]: 'AKIDEXAMPLE', [key.secret_access_key]: 'wJalr-secret' };
const kinds = {
  openai: { protocol: 'openai', more: {} },
  service: { protocol: 'openai', more: {} },
  ollama: { protocol: 'ollama', more: {} },
  cohere: { protocol: 'cohere', more: {} },
  bedrock: { protocol: 'bedrock', more: { region: 'eu-west-1', ...key } },
} as const;
type Kind = keyof typeof kinds;

function open(kind: Kind) {
  const service = new ModelService(kinds[kind].protocol);
  // The fake answers below /v1; a server like this one is asked below /ai/v1.
  if (kind === 'service') service.always = () => Response.json(chatAnswer);
  const url = kind === 'openai' ? `${service.url}/v1` : service.url;
  const config = readProviderConfig({ provider: kind, model: 'm', url, ...kinds[kind].more }, 'embed', 'embedder');
  return { service, provider: openProviders({ credentials }).provider(config) };
}

const chatAnswer = { choices: [{ index: 0, message: { content: 'hello' }, finish_reason: 'stop' }], usage: {} };
const tool = (name: string, strict = false) => ({ name, description: undefined, parameters: undefined, strict });
const shown = (name: string) => ({ name, parameters: { type: 'object', properties: {} } });
const request = (more: Partial<GenerationRequest> = {}) =>
  generationRequest({ model: 'm', messages: [textMessage('user', 'hello')], ...more });
const { sampling } = request();
const changedSampling = {
  ...sampling,
  topK: 7,
  minP: 0.1,
  repetitionPenalty: 1.2,
  frequencyPenalty: 0.5,
  presencePenalty: 0.25,
  seed: 3,
};
const wireSampling = { frequency_penalty: 0.5, presence_penalty: 0.25, top_k: 7, min_p: 0.1, seed: 3 };

async function sent(kind: Kind, more: Partial<GenerationRequest>) {
  const { service, provider } = open(kind);
  await using _service = service;
  await provider.generate(request(more), call);
  return service.seen[0]?.body;
}

describe('a member of a generation reaches a server of the protocol of OpenAI:', () => {
  test.each<[string, Partial<GenerationRequest>, object]>([
    [
      'how tokens are chosen',
      { sampling: { ...changedSampling, logitBias: [[5, -100]] } },
      { ...wireSampling, repetition_penalty: 1.2, logit_bias: { 5: -100 } },
    ],
    ['log probabilities', { topLogprobs: 2 }, { logprobs: true, top_logprobs: 2 }],
    ['log probabilities of the tokens alone', { topLogprobs: 0 }, { logprobs: true }],
    ['the effort of reasoning', { templateVariables: { reasoning_effort: 'low' } }, { reasoning_effort: 'low' }],
    [
      'variables of the template',
      { templateVariables: { style: 'short' }, enableThinking: false },
      { chat_template_kwargs: { style: 'short', enable_thinking: false } },
    ],
    ['going on with a message', { continuesFinal: true }, { continue_final_message: true }],
    ['going on past the end', { ignoreEos: true }, { ignore_eos: true }],
    ['the key of the cache', { promptCache: { key: 'k' } }, { prompt_cache_key: 'k' }],
    [
      'functions whose arguments are enforced, one call at a time',
      { tools: [tool('f', true)], parallelCalls: false },
      {
        tools: [{ type: 'function', function: { ...shown('f'), strict: true } }],
        tool_choice: 'auto',
        parallel_tool_calls: false,
      },
    ],
    [
      'the functions that may be called',
      { tools: [tool('f'), tool('g')], toolChoice: { mode: 'required', names: ['g'], single: false } },
      { tools: [{ type: 'function', function: shown('g') }], tool_choice: 'required' },
    ],
  ])('%s', async (_name, given, expected) => {
    const messages = [{ role: 'user', content: 'hello' }];
    expect(await sent('openai', given)).toEqual({ model: 'm', messages, ...expected });
  });

  test('the most tokens by the name that the server knows: that of OpenAI alone has another', async () => {
    expect(await sent('openai', { tokensMax: 9 })).toMatchObject({ max_tokens: 9 });
    const body = chatBody(request({ tokensMax: 9 }), { name: 'openai', isService: false, isOpenAi: true });
    expect([body.max_completion_tokens, body.max_tokens]).toEqual([9, undefined]);
  });

  test('and what only servers like this one know, reaches those', async () => {
    const body = await sent('service', {
      backend: 'native',
      cacheType: 'int8',
      keepAliveMs: 5_000,
      promptCache: undefined,
      speculation: { policy: 'force', draftModel: 'd', tokens: 3 },
      format: { kind: 'grammar', grammar: 'root ::= "a"' },
    });
    expect(body).toMatchObject({
      backend: 'native',
      cache_dtype: 'int8',
      keep_alive: 5,
      prompt_cache: false,
      speculation_policy: 'force',
      speculative_k: 3,
      draft_model: 'd',
      grammar: 'root ::= "a"',
    });
    expect(await sent('service', { speculation: 'policy_off', keepAliveMs: Number.POSITIVE_INFINITY })).toMatchObject({
      speculation_policy: 'off',
      keep_alive: -1,
    });
  });
});

test('a request to Ollama has its options, its thoughts, and the calls and results of functions', async () => {
  const body = await sent('ollama', {
    sampling: changedSampling,
    keepAliveMs: 60_000,
    enableThinking: true,
    tools: [tool('f'), tool('g')],
    toolChoice: { mode: 'auto', names: ['g'], single: false },
    messages: [
      textMessage('user', 'hello'),
      { ...textMessage('assistant', ''), calls: [{ id: 'c1', name: 'g', arguments: '{"a":1}' }] },
      { ...textMessage('tool', 'two'), callId: 'c1' },
    ],
  });
  expect(body).toEqual({
    model: 'm',
    stream: false,
    think: true,
    keep_alive: 60,
    options: { temperature: 1, top_p: 1, ...wireSampling, repeat_penalty: 1.2 },
    tools: [{ type: 'function', function: shown('g') }],
    messages: [
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: '', tool_calls: [{ function: { name: 'g', arguments: { a: 1 } } }] },
      { role: 'tool', content: 'two', tool_name: 'g' },
    ],
  });
  expect(await sent('ollama', { templateVariables: { reasoning_effort: 'high' } })).toMatchObject({ think: 'high' });
  // The usual values of Ollama are others.
  expect((await sent('ollama', {})).options).toMatchObject({ temperature: 1, top_k: 50, min_p: 0, repeat_penalty: 1 });
});

const required = { mode: 'required', names: undefined, single: false } as const;

describe('a member that a protocol has no word for is refused by its name, and nothing is asked:', () => {
  test.each<[Kind, string, Partial<GenerationRequest>]>([
    ['openai', 'backend', { backend: 'native' }],
    ['openai', 'cache_dtype', { cacheType: 'int8' }],
    ['openai', 'keep_alive', { keepAliveMs: 0 }],
    ['openai', 'speculation_policy', { speculation: { policy: 'force', draftModel: undefined, tokens: 4 } }],
    ['ollama', 'logprobs', { topLogprobs: 0 }],
    ['ollama', 'logit_bias', { sampling: { ...sampling, logitBias: [[1, 1]] } }],
    ['ollama', 'tool_choice', { tools: [tool('f')], toolChoice: required }],
    ['ollama', 'parallel_tool_calls', { tools: [tool('f')], parallelCalls: false }],
    ['ollama', 'tools.function.strict', { tools: [tool('f', true)] }],
    ['ollama', 'chat_template_kwargs', { templateVariables: { style: 'short' } }],
    ['ollama', 'continue_final_message', { continuesFinal: true }],
    ['bedrock', 'seed', { sampling: { ...sampling, seed: 1 } }],
    ['bedrock', 'presence_penalty', { sampling: { ...sampling, presencePenalty: 1 } }],
    ['bedrock', 'reasoning_effort', { templateVariables: { reasoning_effort: 'low' } }],
  ])('%s and %s', async (kind, member, given) => {
    const { service, provider } = open(kind);
    await using _service = service;
    const error = await Promise.try(() => provider.generate(request(given), call)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'model_not_supported' });
    expect((error as ServiceError).message).toStartWith(`${member}: `);
    expect(service.seen).toEqual([]);
  });
});

/** Reads an answer of pieces. */
async function streamed(kind: Kind, lines: readonly string[], more: Partial<GenerationRequest> = {}) {
  const { service, provider } = open(kind);
  await using _service = service;
  service.always = () => new Response(lines.map((line) => `${line}\n`).join(''));
  const deltas: OutputDelta[] = [];
  const logprobs: unknown[] = [];
  const outputs = await provider.generate(request(more), {
    ...call,
    onPiece(_choice, piece, probable) {
      deltas.push(...piece);
      if (probable !== undefined) logprobs.push(...probable);
    },
  });
  return { deltas, logprobs, outputs };
}

const token = (word: string) => ({ token: word, logprob: -1, bytes: [...Buffer.from(word)] });
const events = (...chunks: object[]) => [...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}`), 'data: [DONE]'];

describe('an answer by the protocol of OpenAI', () => {
  test('has the log probabilities, the refusal and the filter of the provider', async () => {
    const { service, provider } = open('openai');
    await using _service = service;
    const content = [{ ...token('no'), bytes: null, top_logprobs: [token('no')] }];
    const choice = { index: 0, message: { content: null, refusal: 'no' }, logprobs: { content } };
    service.always = () => Response.json({ choices: [{ ...choice, finish_reason: 'content_filter' }] });
    const [output] = await provider.generate(request({ topLogprobs: 1 }), call);
    expect(output).toMatchObject({ deltas: [{ kind: 'refusal', text: 'no' }], finish: 'content_filter' });
    expect(output?.result.logprobs).toEqual([{ ...token('no'), top: [token('no')] }]);
    const { deltas, logprobs, outputs } = await streamed(
      'openai',
      events({ choices: [{ ...choice, delta: choice.message, finish_reason: 'content_filter' }] }),
    );
    expect([deltas, logprobs]).toEqual([[{ kind: 'refusal', text: 'no' }], [{ ...token('no'), top: [token('no')] }]]);
    expect(outputs[0]?.finish).toBe('content_filter');
  });

  test('counts the tokens of several answers once, and puts them in their order', async () => {
    const { service, provider } = open('openai');
    await using _service = service;
    const choices = [1, 0].map((index) => ({ index, message: { content: `${index}` }, finish_reason: 'stop' }));
    service.always = () => Response.json({ choices, usage: { prompt_tokens: 5, completion_tokens: 8 } });
    const outputs = await provider.generate(request({ choices: 2 }), call);
    expect(outputs.flatMap(({ deltas }) => deltas)).toMatchObject([{ text: '0' }, { text: '1' }]);
    expect(outputs.reduce((sum, { result }) => sum + result.completionTokens, 0)).toBe(8);
  });

  test('with fewer answers than were asked for is refused', async () => {
    const { service, provider } = open('openai');
    await using _service = service;
    await expect(provider.generate(request({ choices: 2 }), call)).rejects.toThrow('gives 1 of 2 answers');
    expect(service.seen).toHaveLength(1);
    const one = events({ choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }] });
    await expect(streamed('openai', one, { choices: 2 })).rejects.toThrow('gives 1 of 2 answers');
  });

  test('says whether a server like this one drafted', async () => {
    const speculation = { decision: 'enabled', disabled_reason: null, drafted_tokens: 4, accepted_tokens: 2 };
    const report = { decision: 'enabled' as const, disabledReason: undefined, draftedTokens: 4, acceptedTokens: 2 };
    const chunk = { choices: [{ index: 0, delta: { content: 'a' } }], speculation };
    const { outputs } = await streamed('service', events(chunk));
    expect(outputs[0]?.result.speculation).toEqual(report);
  });
});

describe('an answer of Ollama in lines', () => {
  const line = (message: object, more: object = { done: false }) => JSON.stringify({ message, ...more });
  const called = (name: string) => line({ content: '', tool_calls: [{ function: { name, arguments: {} } }] });

  test('has the calls of several lines side by side, and ends with them', async () => {
    const last = line({ content: '' }, { done: true, done_reason: 'stop' });
    const { deltas, outputs } = await streamed('ollama', [called('f'), called('g'), last], { tools: [tool('f')] });
    expect(deltas.filter(({ kind }) => kind === 'call')).toMatchObject([
      { index: 0, name: 'f' },
      { index: 1, name: 'g' },
    ]);
    expect(outputs[0]?.finish).toBe('tool_calls');
  });

  test('that ends before its last line is an error', async () => {
    const cut = streamed('ollama', [line({ content: 'a' })]);
    await expect(cut).rejects.toMatchObject({ code: 'upstream_failed' });
  });
});

test('an answer that AWS Bedrock has filtered says so', async () => {
  const { service, provider } = open('bedrock');
  await using _service = service;
  const output = { message: { content: [{ text: 'a' }] } };
  service.always = () => Response.json({ output, stopReason: 'guardrail_intervened', usage: {} });
  const [answered] = await provider.generate(request(), call);
  expect(answered?.finish).toBe('content_filter');
});

describe('an embedding elsewhere', () => {
  const embed = { model: 'm', items: ['a'] };
  const vector = () => Response.json({ data: [{ index: 0, embedding: [1] }] });

  test('follows an instruction: a server like this one is told of it, others see it before every text', async () => {
    const own = open('service');
    await using _own = own.service;
    own.service.always = vector;
    await own.provider.embed({ ...embed, instruction: 'Find', truncate: 'start' }, call);
    expect(own.service.seen[0]?.body).toMatchObject({ input: ['a'], instruction: 'Find', truncate: 'start' });
    for (const kind of ['openai', 'ollama', 'cohere'] as const) {
      const { service, provider } = open(kind);
      await using _service = service;
      await provider.embed({ ...embed, instruction: 'Find' }, call);
      await provider.embed({ ...embed, instruction: 'Sort' }, call);
      expect(service.texts).toEqual(['Find a', 'Sort a']);
    }
  });

  test('is cut where its provider can cut it, and refused elsewhere', async () => {
    const given = { ollama: true, cohere: 'END' };
    for (const kind of ['ollama', 'cohere'] as const) {
      const { service, provider } = open(kind);
      await using _service = service;
      await provider.embed({ ...embed, truncate: 'end' }, call);
      expect(service.seen[0]?.body.truncate).toBe(given[kind]);
    }
    for (const [kind, truncate] of [
      ['openai', 'end'],
      ['ollama', 'start'],
    ] as const) {
      const { service, provider } = open(kind);
      await using _service = service;
      const embedded = Promise.try(() => provider.embed({ ...embed, truncate }, call));
      await expect(embedded).rejects.toThrow('truncate: ');
      expect(service.seen).toEqual([]);
    }
  });

  test('is a reranking that says where long texts are cut', async () => {
    const { service, provider } = open('service');
    await using _service = service;
    service.always = () => Response.json({ data: [{ index: 0, score: 1 }] });
    await provider.rerank({ model: 'm', query: 'q', texts: ['a'], truncate: 'end' }, call);
    expect(service.seen[0]?.body).toMatchObject({ prompts: ['a'], truncate: 'end' });
  });
});
