import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import type { FunctionTool, ResponseInput, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { type Caller, ownerOf, serverCaller } from '../../src/access/principal.ts';
import { ResponseStore } from '../../src/http/clients/responses/response-store.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const models = Bun.fileURLToPath(new URL('../fixtures/models', import.meta.url));
const model = 'chain';

let server: TestServer;
let client: OpenAI;
beforeAll(async () => {
  server = await startTestServer({
    set: { '--models-dir': models, '--allow-downloads': 'false' },
    environment: { SUNDEW__INFERENCE__THREADS: '1' },
  });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(() => server[Symbol.asyncDispose]());

const add: FunctionTool = {
  type: 'function',
  name: 'add',
  strict: true,
  parameters: {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'integer' } },
    required: ['a', 'b'],
    additionalProperties: false,
  },
};

const told = async (work: Promise<unknown>) => String(await work.catch((error: unknown) => error));

async function events(body: object): Promise<ResponseStreamEvent[]> {
  const all: ResponseStreamEvent[] = [];
  const stream = await client.responses.create({ model, temperature: 0, input: 'hello', ...body, stream: true });
  for await (const event of stream) all.push(event);
  return all;
}

describe('a response', () => {
  test('of text has the whole shape', async () => {
    const asked = { model, input: 'hello', temperature: 0, metadata: { of: 'test' }, tool_choice: 'auto' as const };
    const response = await client.responses.create(asked);
    expect(response).toMatchObject({
      id: expect.stringMatching(/^resp_[0-9a-f]{32}$/),
      object: 'response',
      created_at: expect.any(Number),
      status: 'completed',
      error: null,
      incomplete_details: null,
      instructions: null,
      metadata: { of: 'test' },
      model,
      output: [
        {
          id: expect.stringMatching(/^msg_/),
          type: 'message',
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text: ' from the chain.', annotations: [], logprobs: [] }],
        },
      ],
      parallel_tool_calls: true,
      previous_response_id: null,
      store: true,
      temperature: 0,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      usage: {
        input_tokens: 7,
        input_tokens_details: { cached_tokens: expect.any(Number), cache_write_tokens: 0 },
        output_tokens: 4,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 11,
      },
    } as never);
    expect(response.output_text).toBe(' from the chain.');
  });

  test('that is cut off says why', async () => {
    const response = await client.responses.create({ model, input: 'count', temperature: 0, max_output_tokens: 2 });
    expect([response.status, response.incomplete_details, response.usage?.output_tokens]).toEqual([
      'incomplete',
      { reason: 'max_output_tokens' },
      2,
    ]);
    expect(response.output.at(-1)).toMatchObject({ type: 'message', status: 'incomplete' });
  });

  test('counts the tokens of its thoughts', async () => {
    const { usage } = await client.responses.create({ model, input: 'think', temperature: 0 });
    const { reasoning_tokens } = usage?.output_tokens_details ?? { reasoning_tokens: 0 };
    expect(reasoning_tokens).toBeGreaterThan(0);
    expect(reasoning_tokens).toBeLessThan(usage?.output_tokens ?? 0);
  });

  test('is held to a schema', async () => {
    const schema = { type: 'object', properties: { size: { enum: ['s', 'm'] } }, required: ['size'] };
    const { output_text } = await client.responses.create({
      model,
      input: [{ role: 'user', content: [{ type: 'input_text', text: 'count' }] }],
      temperature: 0,
      text: { format: { type: 'json_schema', name: 'size', schema } },
    });
    expect(['s', 'm']).toContain(JSON.parse(output_text).size);
  });

  test('calls functions, and goes on with what they answered', async () => {
    const first = await client.responses.create({ model, input: 'call', temperature: 0, tools: [add] });
    const calls = first.output.filter((item) => item.type === 'function_call');
    expect(calls).toEqual([
      {
        id: expect.stringMatching(/^fc_/),
        type: 'function_call',
        status: 'completed',
        call_id: expect.stringMatching(/^call_/),
        name: 'add',
        arguments: expect.any(String),
      } as never,
    ]);
    const [call] = calls;
    const output = { type: 'function_call_output' as const, call_id: call?.call_id ?? '', output: '3' };
    const linked = await client.responses.create({
      model,
      temperature: 0,
      tools: [add],
      previous_response_id: first.id,
      input: [output],
    });
    // The same conversation, sent whole.
    const whole = await client.responses.create({
      model,
      temperature: 0,
      tools: [add],
      store: false,
      input: [{ role: 'user', content: 'call' }, ...(first.output as never[]), output],
    });
    expect([linked.status, linked.usage?.input_tokens]).toEqual([whole.status, whole.usage?.input_tokens]);
    const forced = await client.responses.create({
      model,
      input: 'hello',
      temperature: 0,
      tools: [add],
      tool_choice: { type: 'function', name: 'add' },
      max_output_tokens: 60,
    });
    expect(forced.output[0]).toMatchObject({ type: 'function_call', name: 'add' });
    const allowed = await client.responses.create({
      model,
      input: 'hello',
      temperature: 0,
      tools: [add, { ...add, name: 'subtract' }],
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'subtract' }] },
      max_output_tokens: 60,
    });
    expect(allowed.output[0]).toMatchObject({ type: 'function_call', name: 'subtract' });
  });
});

describe('a streamed response', () => {
  test('tells of its items in the order of the OpenAI interface', async () => {
    const all = await events({});
    expect(all.map(({ type }) => type).filter((type, at, types) => type !== types[at - 1])).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(all.map(({ sequence_number }) => sequence_number)).toEqual([...all.keys()]);
    const deltas = all.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : []));
    expect(deltas.length).toBeGreaterThan(1);
    const last = all.at(-1);
    if (last?.type !== 'response.completed') throw new Error('the last event is the whole response');
    expect(last.response.output).toMatchObject([{ type: 'message', content: [{ text: deltas.join('') }] }]);
    expect(await client.responses.retrieve(last.response.id)).toMatchObject({ output: last.response.output });
  });

  test('is put together by the client, calls too', async () => {
    const stream = client.responses.stream({ model, input: 'call', temperature: 0, tools: [add] });
    const final = await stream.finalResponse();
    const whole = await client.responses.create({ model, input: 'call', temperature: 0, tools: [add] });
    const shown = (items: typeof whole.output) =>
      items.map((item) => (item.type === 'function_call' ? [item.name, item.arguments] : item.type));
    expect(shown(final.output as typeof whole.output)).toEqual(shown(whole.output));
    const kinds = new Set((await events({ input: 'call', tools: [add] })).map(({ type }) => type));
    expect(kinds).toContain('response.function_call_arguments.delta');
    expect(kinds).toContain('response.function_call_arguments.done');
  });
});

describe('log probabilities', () => {
  const include = ['message.output_text.logprobs' as const];

  test('are those of the tokens that spell the message, whole and in a stream, not of thoughts and calls', async () => {
    for (const asked of [{ input: 'hello' }, { input: 'think' }, { input: 'call', tools: [add] }]) {
      const whole = await client.responses.create({ model, temperature: 0, include, top_logprobs: 2, ...asked });
      const message = whole.output.find((item) => item.type === 'message');
      const text = message?.content.find((part) => part.type === 'output_text');
      expect(
        text?.logprobs
          ?.map(({ token }) => token)
          .join('')
          .trim(),
      ).toBe(text?.text.trim() as string);
      expect(
        text?.logprobs?.every(({ logprob, top_logprobs }) => logprob <= 0 && top_logprobs.length === 2) ?? true,
      ).toBe(true);
      const all = await events({ include, top_logprobs: 2, ...asked });
      const deltas = all.filter((event) => event.type === 'response.output_text.delta');
      expect(deltas.flatMap(({ logprobs }) => logprobs)).toEqual((text?.logprobs ?? []) as never[]);
      const last = all.at(-1);
      expect(last?.type === 'response.completed' && last.response.output.map(({ type }) => type)).toEqual(
        whole.output.map(({ type }) => type),
      );
      const done = all.find((event) => event.type === 'response.output_text.done');
      expect(done?.logprobs).toEqual(text?.logprobs as never);
    }
  });

  test('are given without alternatives where only they are asked for, and not at all where nothing is', async () => {
    const logprobs = async (asked: object) => {
      const [message] = (await client.responses.create({ model, input: 'hello', temperature: 0, ...asked })).output;
      const [part] = message?.type === 'message' ? message.content : [];
      return part?.type === 'output_text' ? part.logprobs?.map(({ top_logprobs }) => top_logprobs.length) : undefined;
    };
    expect(await logprobs({ include })).toEqual([0, 0, 0, 0]);
    expect(await logprobs({ top_logprobs: 1 })).toEqual([1, 1, 1, 1]);
    expect(await logprobs({})).toEqual([]);
  });
});

describe('stored responses', () => {
  test('are read, gone on with and deleted; others are not there', async () => {
    const { id } = await client.responses.create({ model, input: 'hello', temperature: 0 });
    const again = await client.responses.create({ model, input: 'hello', temperature: 0, previous_response_id: id });
    const alone = await client.responses.create({ model, input: 'hello', temperature: 0, store: false });
    expect(again.previous_response_id).toBe(id);
    expect(again.usage?.input_tokens).toBeGreaterThan(alone.usage?.input_tokens ?? 0);
    expect((await client.responses.retrieve(id)).id).toBe(id);
    expect(await told(client.responses.retrieve(id, { stream: true }))).toContain('not streamed again');
    expect(await told(client.responses.retrieve(alone.id))).toContain('not_found');
    expect(await told(client.responses.cancel(id))).toContain('in the background');
    await client.responses.delete(id);
    expect(await told(client.responses.retrieve(id))).toContain('not_found');
    const gone = client.responses.create({ model, input: 'a', previous_response_id: id });
    expect(await told(gone)).toContain('no response');
  });

  test('have items that a request may refer to by their ids', async () => {
    const said = await client.responses.create({ model, input: 'hello', temperature: 0 });
    const called = await client.responses.create({ model, input: 'call', temperature: 0, tools: [add] });
    const reference = (item: { id?: string | null } | undefined) =>
      ({ type: 'item_reference', id: item?.id ?? '' }) as const;
    const asked = async (...input: unknown[]) => {
      const answer = await client.responses.create({ model, temperature: 0, store: false, input: input as never });
      return answer.usage?.input_tokens;
    };
    const user = { role: 'user', content: 'hello' } as const;
    const output = { type: 'function_call_output', call_id: 'c', output: '3' } as const;
    expect(await asked(user, reference(said.output[0]), user)).toBe(await asked(user, said.output[0], user));
    expect(await asked(user, reference(called.output[0]), output)).toBe(await asked(user, called.output[0], output));
    const unknown = [{ id: 'msg_1' }, { id: said.output[0]?.id?.replace(/0$/, '1') ?? '' }];
    for (const each of unknown) expect(await told(asked(user, reference(each)))).toContain('not_found: no item');
    await client.responses.delete(said.id);
    expect(await told(asked(user, reference(said.output[0])))).toContain('send the item itself');
  });

  test('have a list of what they were made from, the conversation before them included', async () => {
    const first = await client.responses.create({
      model,
      input: 'call',
      temperature: 0,
      tools: [add],
      instructions: 'be',
    });
    const call = first.output.find((item) => item.type === 'function_call');
    const output = { type: 'function_call_output' as const, call_id: call?.call_id ?? '', output: '3' };
    const input: ResponseInput = [output, { role: 'user', content: [{ type: 'input_text', text: 'hello' }] }];
    const second = await client.responses.create({ model, input, temperature: 0, previous_response_id: first.id });
    const all: unknown[] = [];
    for await (const item of client.responses.inputItems.list(second.id, { order: 'asc', limit: 1 })) all.push(item);
    const said = (text: string) => ({ type: 'message', role: 'user', content: [{ type: 'input_text', text }] });
    expect(all).toMatchObject([said('call'), ...first.output, { ...output, status: 'completed' }, said('hello')]);
    const ids = (all as { id: string }[]).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const page = await client.responses.inputItems.list(second.id, { include: ['message.input_image.image_url'] });
    expect([page.data.map(({ id }) => id), page.has_more]).toEqual([ids.toReversed(), false]);
    expect(page).toHaveProperty('body.first_id', ids.at(-1));
    expect(page).toHaveProperty('body.last_id', ids[0]);
    const referred = [{ type: 'item_reference' as const, id: ids[0] ?? '' }];
    const again = await client.responses.create({
      model,
      input: referred,
      temperature: 0,
      tools: [add],
      instructions: 'be',
    });
    expect(again.usage?.input_tokens).toBe(first.usage?.input_tokens);
  });

  test('have no list of items where it is asked for wrongly, and none behind an item that is not theirs', async () => {
    const { id, output } = await client.responses.create({ model, input: 'hello', temperature: 0 });
    const list = (query: object, of = id) =>
      told(client.responses.inputItems.list(of, query).then((page) => page.data.length));
    expect(await list({})).toBe('1');
    for (const limit of [0, 101, 1.5]) expect(await list({ limit })).toContain('limit');
    expect(await list({ order: 'down' })).toContain('order');
    expect(await list({ include: ['message.input_image'] })).toContain('include');
    expect(await list({ after: output[0]?.id })).toContain('not_found: after');
    expect(await list({}, 'resp_none')).toContain('not_found: no response');
  });

  test('that are too large to be kept say so', async () => {
    const metadata = { of: 'x'.repeat(65 * 1_024 * 1_024) };
    const response = await client.responses.create({ model, input: 'hello', temperature: 0, metadata });
    expect(await told(client.responses.retrieve(response.id))).toContain('not_found');
    expect(response).toHaveProperty('store', false);
  });

  test('expire, make room for others, and belong to who asked, with a key that may use their model', async () => {
    const callerOf = (name: string, resource = 'm'): Caller => {
      const grants = [{ resourceType: 'inference', resource, level: 'read' }] as const;
      return {
        ...serverCaller('r', new AbortController().signal),
        principal: { kind: 'granted', name, madeMs: 0, grants },
      };
    };
    const clock = new FakeClock();
    const store = new ResponseStore(clock, { keptMs: 1_000, charsMax: 950 });
    const response = (id: string, chars = 10) => ({
      id,
      owner: ownerOf(callerOf('a').principal),
      model: 'm',
      body: { text: 'x'.repeat(chars), output: [] },
      input: [],
    });
    store.set(response('one'));
    const [a, b] = [callerOf('a'), callerOf('b')];
    expect([store.get('one', callerOf('a', '*'))?.id, store.get('one', callerOf('a', 'n'))]).toEqual([
      'one',
      undefined,
    ]);
    expect([store.get('one', a)?.id, store.get('one', b), store.delete('one', b)]).toEqual(['one', undefined, false]);
    await clock.advance(500);
    store.set(response('two', 850));
    expect([store.get('one', a), store.get('two', a)?.id]).toEqual([undefined, 'two']);
    store.set(response('large', 2_000));
    expect(store.get('large', a)).toBeUndefined();
    await clock.advance(1_001);
    expect(store.get('two', a)).toBeUndefined();
  });
});

test('members that are null are absent', async () => {
  const members = ['conversation', 'prompt', 'background', 'tools', 'tool_choice', 'text', 'reasoning', 'metadata'];
  const nulls = Object.fromEntries(members.map((member) => [member, null]));
  const { status } = await server.send('POST', '/ai/v1/responses', { model, input: 'hello', ...nulls });
  expect(status).toBe(200);
});

test('what is not offered is refused by name', async () => {
  const asked = { model, input: 'hello' };
  const cases: [object, string][] = [
    [{ background: true }, 'background:'],
    [{ truncation: 'auto' }, 'truncation:'],
    [{ conversation: 'conv_1' }, 'conversation:'],
    [{ prompt: { id: 'p' } }, 'prompt:'],
    [{ tools: [{ type: 'web_search' }] }, 'tools.0'],
    [{ top_logprobs: 21 }, 'top_logprobs'],
    [{ max_output_token: 5 }, 'did you mean "max_output_tokens"?'],
    [{ model: 'gone' }, 'model_not_found'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
      'input.0.content.0: image_url is missing',
    ],
    [
      {
        input: [
          { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' },
          {
            type: 'function_call_output',
            call_id: 'c',
            output: [{ type: 'input_image', image_url: 'https://h/i.png' }],
          },
        ],
      },
      'images and sounds belong to user messages',
    ],
    [{ tools: [{ type: 'web_search' }] }, 'member "tools.0.type": expected "function"'],
    [{ tools: [{ type: 'function' }] }, 'member "tools.0.name" is missing'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_file', filename: 'a.pdf' }] }] },
      'member "input.0.content.0.type": expected "input_text" or "output_text" or "text" or "refusal" or "input_image"',
    ],
  ];
  for (const [more, words] of cases) {
    const { status, body } = await server.send('POST', '/ai/v1/responses', { ...asked, ...more });
    expect([status, String(body.error).includes(words) ? words : body.error]).toEqual([
      words === 'model_not_found' ? 404 : 400,
      words,
    ]);
  }
});
