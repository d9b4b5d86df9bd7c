import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { TemplateSandbox } from '../../../src/inference/templates/template-sandbox.ts';

const chatMl = `{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif -%}`;

let sandbox: TemplateSandbox;
beforeAll(async () => {
  sandbox = await TemplateSandbox.open();
});
afterAll(() => sandbox[Symbol.dispose]());

function render(template: string, context: object = {}): string {
  return sandbox.render(template, JSON.stringify(context));
}

describe('a chat template', () => {
  test('makes a prompt of messages', () => {
    const messages = [
      { role: 'system', content: ' Be brief. ' },
      { role: 'user', content: 'Hi' },
    ];
    expect(render(chatMl, { messages, add_generation_prompt: true })).toBe(
      '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n',
    );
  });

  test('may use what templates of models use', () => {
    const tools = [{ type: 'function', function: { name: 'add', parameters: { type: 'object' } } }];
    expect(render('{% for tool in tools %}{{ tool | tojson }}{% endfor %}', { tools })).toBe(
      '{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}',
    );
    expect(
      render('{% set ns = namespace(n=0) %}{% for x in [1, 2] %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}'),
    ).toBe('3');
    expect(render("{{ 'a b'.split(' ')[-1].upper() }}{{ x is defined }}{{ [1, 2, 3][1:] | length }}")).toBe('Bfalse2');
  });

  test('may take more steps for more messages', () => {
    const messages = Array.from({ length: 5_000 }, () => ({ role: 'user', content: 'a' }));
    const prompt = render(chatMl, { messages });
    expect(prompt).toBe('<|im_start|>user\na<|im_end|>\n'.repeat(messages.length));
  });

  test('refuses messages with its own words', () => {
    expect(() => render("{{ raise_exception('roles must alternate') }}")).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining('roles must alternate') }),
    );
  });
});

describe('a hostile template', () => {
  const stopped = expect.objectContaining({ code: 'inference_failed' });
  const hostile: Readonly<Record<string, string>> = {
    'loops for ever': '{% for i in range(1000000000) %}{% for j in range(1000000000) %}x{% endfor %}{% endfor %}',
    'doubles a text':
      "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
    'writes a gigabyte':
      "{% set ns = namespace(x='a' ~ 'bcdefghijklmnop') %}{% for i in range(16) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{% for i in range(1024) %}{{ ns.x }}{% endfor %}",
    'is deeply nested': `{{ ${'('.repeat(20_000)}1${')'.repeat(20_000)} }}`,
    'is cut off': '{% for message in messages %}',
  };
  for (const [what, template] of Object.entries(hostile)) {
    test(`that ${what} is stopped, and the next one works`, () => {
      expect(() => render(template, { messages: [] })).toThrow(stopped);
      expect(render(chatMl, { messages: [] })).toBe('');
    });
  }

  test('that calls itself is stopped', () => {
    expect(() => render('{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}')).toThrow();
    expect(render('{{ 1 }}')).toBe('1');
  });

  test('reaches nothing outside', () => {
    const ways = [
      "''.__class__",
      "''.constructor.constructor('return this')()",
      'globalThis',
      'process',
      'module.exports',
    ];
    for (const way of ways) {
      let seen = '';
      try {
        seen = render(`{{ ${way} }}`);
      } catch {}
      expect(seen.replace('undefined', '')).toBe('');
    }
  });

  test('makes no more than its bound', async () => {
    using small = await TemplateSandbox.open({
      fuelSlices: 200,
      charsOfSlice: 32,
      addedSlicesMax: 2_000,
      memoryBytes: 64 * 1024 * 1024,
      stackBytes: 256 * 1024,
      outputCharsMax: 10,
    });
    expect(small.render("{{ '0123456789' }}", '{}')).toBe('0123456789');
    const tooLong = expect.objectContaining({ code: 'context_length_exceeded' });
    expect(() => small.render("{{ '0123456789a' }}", '{}')).toThrow(tooLong);
    expect(() => small.render('', JSON.stringify({ messages: ['0'] }))).toThrow(tooLong);
  });
});
