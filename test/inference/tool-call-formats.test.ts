import { afterAll, beforeAll, expect, test } from 'bun:test';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const weights = Bun.fileURLToPath(new URL('../fixtures/models/generators/chain/model.gguf', import.meta.url));
const turns =
  "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}{{ '<|im_start|>assistant\\n' }}";
/** Chat templates that have functions called in a way of their own, by the name of the model that gets them. */
const templates: Readonly<Record<string, string>> = {
  brackets: `{% if tools %}[AVAILABLE_TOOLS] {{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls[0].id | length != 9 %}{{ raise_exception('nine letters') }}{% endif %}[TOOL_CALLS] [{{ m.tool_calls[0].function | tojson }}]{% elif m.role == 'tool' %}{% if m.tool_call_id | length != 9 %}{{ raise_exception('nine letters') }}{% endif %}{{ m.content }}{% else %}{{ m.content }}{% endif %}{% endfor %}`,
  marked: `{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}{% if c.id | length != 9 %}{{ raise_exception('nine letters') }}{% endif %}[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}`,
  separated: `{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{% if m.tool_calls %}<｜tool▁calls▁begin｜>{% for c in m.tool_calls %}{{ '<｜tool▁call▁begin｜>' + c['function']['name'] + '<｜tool▁sep｜>' + c['function']['arguments'] + '<｜tool▁call▁end｜>' }}{% endfor %}<｜tool▁calls▁end｜>{% else %}{{ m.content }}{% endif %}{% endfor %}`,
  fenced: `{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{% if m.tool_calls %}<｜tool▁calls▁begin｜>{% for c in m.tool_calls %}{{ '<｜tool▁call▁begin｜>' + c['type'] + '<｜tool▁sep｜>' + c['function']['name'] + '\\n' + '\`\`\`json' + '\\n' + c['function']['arguments'] + '\\n\`\`\`<｜tool▁call▁end｜>' }}{% endfor %}<｜tool▁calls▁end｜>{% else %}{{ m.content }}{% endif %}{% endfor %}`,
  functools: `{% if tools %}Respond with functools[{"name": [function name], "arguments": [function arguments as JSON]}, ...] {{ tools | tojson }}{% endif %}${turns}`,
  phi: `{% for m in messages %}{% if m.role == 'system' and 'tools' in m %}<|tool|>{{ m.tools }}<|/tool|>{% else %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}<|assistant|>`,
  pipes: `{% if tools %}Respond with <|tool_call|> and a list of {{ tools | tojson }}{% endif %}${turns}`,
  bare: `{% if tools %}Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}. {{ tools | tojson }}{% endif %}${turns}`,
};

/** The file with one of its tokens made a control token, as many models have their marks. */
function withControlToken(token: string): Buffer {
  const bytes = readFileSync(weights);
  const arrayOf = (key: string) => bytes.indexOf(key) + key.length + 8;
  let at = arrayOf('tokenizer.ggml.tokens');
  const count = Number(bytes.readBigUInt64LE(at));
  at += 8;
  for (let id = 0; id < count; id += 1) {
    const length = Number(bytes.readBigUInt64LE(at));
    const text = bytes.toString('utf8', at + 8, at + 8 + length);
    if (text === token) bytes.writeInt32LE(3, arrayOf('tokenizer.ggml.token_type') + 8 + 4 * id);
    at += 8 + length;
  }
  return bytes;
}

let server: TestServer;
let client: OpenAI;
const directory = new TemporaryDirectory();

beforeAll(async () => {
  for (const [name, template] of Object.entries(templates)) {
    const folder = join(directory.path, 'generators', name);
    mkdirSync(folder, { recursive: true });
    cpSync(weights, join(folder, 'model.gguf'));
    writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ chat_template: template }));
  }
  const control = join(directory.path, 'generators/control');
  mkdirSync(control);
  writeFileSync(join(control, 'model.gguf'), withControlToken('<tool_call>'));
  server = await startTestServer({ set: { '--models-dir': directory.path, '--allow-downloads': 'false' } });
  client = new OpenAI({ baseURL: `${server.url}/ai/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const tools = [
  {
    type: 'function' as const,
    function: {
      name: 'pick',
      parameters: { type: 'object', properties: { one: { enum: ['a', 'b'] } }, required: ['one'] },
    },
  },
];

test.each(Object.keys(templates))('functions are called in the form of the template of %s', async (model) => {
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'which one?' }];
  const request = { model, messages, tools, tool_choice: 'required' as const, temperature: 0, max_tokens: 600 };
  const { choices } = await client.chat.completions.create(request);
  const [made] = choices[0]?.message.tool_calls ?? [];
  if (made?.type !== 'function') throw new Error('there is no call');
  expect([choices[0]?.finish_reason, choices[0]?.message.content]).toEqual(['tool_calls', null]);
  expect([made.function.name, ['a', 'b']]).toEqual([
    'pick',
    expect.arrayContaining([argument(made.function.arguments)]),
  ]);
  const back: OpenAI.ChatCompletionMessageParam[] = [
    ...messages,
    { role: 'assistant', content: null, tool_calls: [made] },
    { role: 'tool', tool_call_id: made.id, content: 'that one' },
  ];
  const next = await client.chat.completions.create({ model, messages: back, tools, max_tokens: 1 });
  expect(next.choices).toHaveLength(1);
});

test.each(['auto', 'required'] as const)('marks that are control tokens are seen (%s)', async (tool_choice) => {
  const integers = { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } } };
  const add = { type: 'function' as const, function: { name: 'add', parameters: integers } };
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'call' }];
  const request = { model: 'control', messages, tools: [add], tool_choice, temperature: 0 };
  const [choice] = (await client.chat.completions.create(request)).choices;
  expect(choice?.finish_reason).toBe('tool_calls');
  expect(choice?.message).toMatchObject({
    content: null,
    tool_calls: [{ function: { name: 'add', arguments: '{"a":1,"b":2}' } }],
  });
});

function argument(text: string): unknown {
  return (JSON.parse(text) as { one?: unknown }).one;
}
