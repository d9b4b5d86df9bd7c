import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { TemplateSandbox } from '../../../src/inference/templates/template-sandbox.ts';

// Templates of our own for the prompt formats that families of models document, written with what such templates use.

let sandbox: TemplateSandbox;
beforeAll(async () => {
  sandbox = await TemplateSandbox.open();
});
afterAll(() => sandbox[Symbol.dispose]());

function render(template: string, context: object): string {
  return sandbox.render(template, JSON.stringify(context));
}

const tools = [
  { type: 'function', function: { name: 'add', description: 'Adds', parameters: { type: 'object', properties: {} } } },
];
const question = { role: 'user', content: 'How much is 1 + 2?' };
const call = { id: 'call_1', type: 'function', function: { name: 'add', arguments: { a: 1, b: 2 } } };

describe('ChatML', () => {
  const template = `
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set system = 'You are helpful.' %}
    {%- set rest = messages %}
{%- endif %}
{{- '<|im_start|>system\\n' + system }}
{%- if tools %}
    {{- '\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '\\n</tools>' }}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- for message in rest %}
    {%- if message.role == 'assistant' and message.tool_calls is defined and message.tool_calls %}
        {{- '<|im_start|>assistant' }}
        {%- for each in message.tool_calls %}
            {%- set tool_call = each.function if each.function is defined else each %}
            {{- '\\n<tool_call>\\n{"name": "' ~ tool_call.name ~ '", "arguments": ' ~ tool_call.arguments | tojson ~ '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.first or rest[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or rest[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- else %}
        {%- set text = message.content.split('</think>')[-1].lstrip('\\n') if '</think>' in message.content else message.content %}
        {{- '<|im_start|>' + message.role + '\\n' + text + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}`;

  test('with a call, its answers and a thought that is dropped', () => {
    const messages = [
      question,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', content: '3' },
      { role: 'tool', content: '4' },
      { role: 'assistant', content: '<think>easy</think>\n\nThree' },
    ];
    expect(render(template, { messages, tools, add_generation_prompt: true, enable_thinking: false })).toBe(
      '<|im_start|>system\nYou are helpful.\n<tools>\n' +
        '{"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {"type": "object", "properties": {}}}}' +
        '\n</tools><|im_end|>\n<|im_start|>user\nHow much is 1 + 2?<|im_end|>\n' +
        '<|im_start|>assistant\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call><|im_end|>\n' +
        '<|im_start|>user\n<tool_response>\n3\n</tool_response>\n<tool_response>\n4\n</tool_response><|im_end|>\n' +
        '<|im_start|>assistant\nThree<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n',
    );
  });
});

describe('headers', () => {
  const template = `{{- bos_token }}
{%- set date_string = date_string if date_string is defined else strftime_now('%d %b %Y') %}
{%- set ns = namespace(tools_shown=false) %}
{%- for message in messages %}
    {%- if message.role not in ['system', 'user', 'assistant', 'tool'] %}
        {{- raise_exception('unknown role ' ~ message.role) }}
    {%- endif %}
    {{- '<|start_header_id|>' ~ ('ipython' if message.role == 'tool' else message.role) ~ '<|end_header_id|>\\n\\n' }}
    {%- if message.role == 'system' %}{{- 'Today: ' ~ date_string ~ '\\n\\n' }}{%- endif %}
    {%- if message.role == 'user' and tools is not none and tools and not ns.tools_shown %}
        {%- set ns.tools_shown = true %}
        {%- for tool in tools %}{{- tool | tojson(indent=4) ~ '\\n\\n' }}{%- endfor %}
    {%- endif %}
    {%- if message.content is string %}
        {{- message.content | trim }}
    {%- elif message.content is iterable %}
        {%- for part in message.content %}{%- if part.type == 'text' %}{{- part.text | trim }}{%- endif %}{%- endfor %}
    {%- endif %}
    {{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}`;

  test('with a date, tools in front of the first question, and parts', () => {
    const messages = [
      { role: 'system', content: ' Be brief. ' },
      { role: 'user', content: [{ type: 'text', text: 'How much?' }] },
      { role: 'user', content: 'Well?' },
    ];
    const given = { messages, tools: [{ name: 'add' }], bos_token: '<|begin_of_text|>', add_generation_prompt: true };
    expect(render(template, { ...given, date_string: '01 Jan 2026' })).toBe(
      '<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nToday: 01 Jan 2026\n\nBe brief.<|eot_id|>' +
        '<|start_header_id|>user<|end_header_id|>\n\n{\n    "name": "add"\n}\n\nHow much?<|eot_id|>' +
        '<|start_header_id|>user<|end_header_id|>\n\nWell?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n',
    );
    expect(render(template, given)).toMatch(/Today: \d\d [A-Z][a-z]{2} \d{4}\n/);
    expect(() => render(template, { ...given, messages: [{ role: 'bard', content: '' }] })).toThrow(
      'unknown role bard',
    );
  });
});

describe('instructions in brackets', () => {
  const template = `
{%- macro as_text(content) -%}{{ content if content is string else content | map(attribute='text') | join('') }}{%- endmacro -%}
{%- set systems = messages | selectattr('role', 'equalto', 'system') | list -%}
{%- set system = systems[0].content if systems | length > 0 else '' -%}
{%- set loop_messages = messages | rejectattr('role', 'equalto', 'system') | list -%}
{{- bos_token -}}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{- raise_exception('roles must alternate') -}}
    {%- endif -%}
    {%- if message['role'] == 'user' -%}
        {{- '[INST] ' ~ (system ~ '\\n\\n' if loop.last and system else '') ~ as_text(message['content']) ~ ' [/INST]' -}}
    {%- else -%}
        {{- ' ' ~ message['content'].strip() ~ eos_token -}}
    {%- endif -%}
{%- endfor -%}`;

  test('with roles in turn and the system text in the last one', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: ' Hello ' },
      { role: 'user', content: 'Bye' },
    ];
    const given = { messages, bos_token: '<s>', eos_token: '</s>' };
    expect(render(template, given)).toBe('<s>[INST] Hi [/INST] Hello</s>[INST] Be brief.\n\nBye [/INST]');
    expect(() => render(template, { ...given, messages: [messages[1], messages[3]] })).toThrow('roles must alternate');
  });
});

describe('turns', () => {
  const template = `{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}{{ raise_exception('no system role') }}{%- endif -%}
{%- for message in messages -%}
{%- if message.content == 'skip' -%}{%- continue -%}{%- endif -%}
{%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}
{%- if message.content.endswith('!') -%}{%- break -%}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}`;

  test('keep what a loop wrote before it was left', () => {
    const loops =
      "{% for a in [1, 2, 3] %}{% for b in ['x', 'y', 'z'] %}{{ a }}{% if b == 'y' %}{{ b }}!{% if a == 2 %}{% break %}{% else %}{% continue %}{% endif %}{% endif %},{% endfor %};{% endfor %}";
    expect(render(loops, {})).toBe('1,1y!1,;2,2y!;3,3y!3,;');
    expect(render('{% for a in [1, 2] %}{{ a }}{% if loop.last %}{% break %}{% endif %}.{% endfor %}', {})).toBe('1.2');
  });

  test('with another name for the assistant, and loops that are left early', () => {
    const messages = [question, { role: 'user', content: 'skip' }, { role: 'assistant', content: 'Three!' }, question];
    expect(render(template, { messages, bos_token: '<bos>', add_generation_prompt: true })).toBe(
      '<bos><start_of_turn>user\nHow much is 1 + 2?<end_of_turn>\n' +
        '<start_of_turn>model\nThree!<end_of_turn>\n<start_of_turn>model\n',
    );
    expect(() => render(template, { messages: [{ role: 'system', content: '' }] })).toThrow('no system role');
  });
});
