import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { finished } from '../../../../src/inference/generation/generate.ts';
import {
  type OutputDelta,
  OutputParser,
  type OutputParserOptions,
} from '../../../../src/inference/generation/output-parser.ts';
import { taggedCalls, toolCallFormatOf } from '../../../../src/inference/generation/tools/tool-call-format.ts';
import { remoteOutput } from '../../../../src/inference/providers/remote/remote-output.ts';
import { must } from '../../../../src/lib/assert.ts';
import type { GenerateResult } from '../../../../src/model-host/operations/generate.ts';

const formOf = (template: string) => must(toolCallFormatOf(template), 'the template has a form of its own');

interface Whole {
  reasoning: string;
  content: string;
  calls: { name: string; arguments: string }[];
}

function joined(deltas: readonly OutputDelta[]): Whole {
  const whole: Whole = { reasoning: '', content: '', calls: [] };
  for (const delta of deltas) {
    if (delta.kind === 'call') whole.calls[delta.index] = { name: delta.name, arguments: '' };
    else if (delta.kind === 'arguments') (whole.calls[delta.index] as { arguments: string }).arguments += delta.text;
    else if (delta.kind !== 'refusal') whole[delta.kind] += delta.text;
  }
  return whole;
}

function read(pieces: readonly string[], options: Partial<OutputParserOptions> = {}): Whole {
  const reader = new OutputParser({ thinking: false, calls: undefined, functions: ['f', 'g'], ...options });
  return joined([...pieces.flatMap((piece) => reader.push(piece)), ...reader.finish()]);
}

const calls = { calls: taggedCalls };
const listed = { calls: formOf("{{ tools }} '[TOOL_CALLS] ['") };
const bare = { calls: formOf('{{ tools }} {"name": function name, "parameters": dictionary}') };
const marked = { calls: formOf("{{ tools }} '[TOOL_CALLS]' '[CALL_ID]' '[ARGS]'") };
const separated = { calls: formOf("{{ tools }} '<｜tool▁calls▁begin｜>'") };
const fenced = { calls: formOf("{{ tools }} '<｜tool▁calls▁begin｜>' '```json'") };
const twoCalls = [
  { name: 'f', arguments: '{"a": "]}[TOOL_CALLS]"}' },
  { name: 'g', arguments: '{}' },
];
const cases: readonly (readonly [text: string, options: Partial<OutputParserOptions>, whole: Partial<Whole>])[] = [
  ['plain text\n', {}, { content: 'plain text\n' }],
  ['  leading space', {}, { content: '  leading space' }],
  ['a < b <thi', {}, { content: 'a < b <thi' }],
  ['<think>\nhm\n\n</think>\n\nso', {}, { reasoning: 'hm', content: 'so' }],
  [' <think>cut off', {}, { reasoning: 'cut off' }],
  ['<think></think>x', {}, { content: 'x' }],
  ['text <think>later</think>', {}, { content: 'text <think>later</think>' }],
  ['thoughts\n</think>\nanswer', { thinking: true }, { reasoning: 'thoughts', content: 'answer' }],
  ['a </thin b', { thinking: true }, { reasoning: 'a </thin b' }],
  [
    '<tool_call>{"name":"f","arguments":{}}</tool_call>',
    {},
    { content: '<tool_call>{"name":"f","arguments":{}}</tool_call>' },
  ],
  [
    '<tool_call>\n{"name": "f", "arguments": {"a": "}</tool_call>\\""}}\n</tool_call>',
    calls,
    { calls: [{ name: 'f', arguments: '{"a": "}</tool_call>\\""}' }] },
  ],
  [
    'Let me see.\n<tool_call>{"name":"f","arguments":{}}</tool_call>\n<tool_call>{"name":"g","arguments":{"x":[{}]}}</tool_call>\n',
    calls,
    {
      content: 'Let me see.',
      calls: [
        { name: 'f', arguments: '{}' },
        { name: 'g', arguments: '{"x":[{}]}' },
      ],
    },
  ],
  [
    '<think>f?</think>\n<tool_call>{"name":"f","arguments":{}}</tool_call>',
    calls,
    { reasoning: 'f?', calls: [{ name: 'f', arguments: '{}' }] },
  ],
  [
    'So:\n[TOOL_CALLS] [{"name": "f", "arguments": {"a": "]}"}}, {"name": "g", "arguments": {}}]',
    listed,
    {
      content: 'So:',
      calls: [
        { name: 'f', arguments: '{"a": "]}"}' },
        { name: 'g', arguments: '{}' },
      ],
    },
  ],
  ['[TOOL_CALLS] text', listed, { content: '[TOOL_CALLS] text' }],
  [
    'So:\n[TOOL_CALLS]f[ARGS]{"a": "]}[TOOL_CALLS]"}[TOOL_CALLS]g[CALL_ID]a1b2c3d4e[ARGS]{}',
    marked,
    { content: 'So:', calls: twoCalls },
  ],
  ['[TOOL_CALLS] f [ARGS] {}\nDone', marked, { content: 'Done', calls: [{ name: 'f', arguments: '{}' }] }],
  ['[TOOL_CALLS]f[ARGS]{"a": [1, ', marked, { calls: [{ name: 'f', arguments: '{"a": [1, ' }] }],
  ['[TOOL_CALLS] text', marked, { content: '[TOOL_CALLS] text' }],
  [
    'So:<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": "]}[TOOL_CALLS]"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    separated,
    { content: 'So:', calls: twoCalls },
  ],
  [
    '<think>f</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"a": "]}[TOOL_CALLS]"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜> Done',
    fenced,
    { reasoning: 'f', content: 'Done', calls: twoCalls },
  ],
  [
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁ca',
    separated,
    { calls: [{ name: 'f', arguments: '{}' }] },
  ],
  ['\n{"name": "f", "parameters": {"a": {}}}', bare, { calls: [{ name: 'f', arguments: '{"a": {}}' }] }],
  ['{"name": "h", "parameters": {}}', bare, { content: '{"name": "h", "parameters": {}}' }],
  ['{"name": "f", "age": 3}', bare, { content: '{"name": "f", "age": 3}' }],
  ['so {"name": "f", "parameters": {}}', bare, { content: 'so {"name": "f", "parameters": {}}' }],
  // Cut off by the length: what there is of the arguments is given as it is.
  ['<tool_call>{"name":"f","arguments":{"a": [1, ', calls, { calls: [{ name: 'f', arguments: '{"a": [1, ' }] }],
  ['<tool_call>{"name":"f", "argu', calls, { content: '<tool_call>{"name":"f", "argu' }],
  ['text <tool_c', calls, { content: 'text <tool_c' }],
  ['text \n ', calls, { content: 'text \n ' }],
];

describe('an output', () => {
  test.each(cases)('%j is read the same however it is cut into pieces', (text, options, whole) => {
    const expected = { reasoning: '', content: '', calls: [], ...whole };
    expect(read([text], options)).toEqual(expected);
    expect(read([...text], options)).toEqual(expected);
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 6 }), (cuts) => {
        const places = [0, ...cuts.toSorted((left, right) => left - right), text.length];
        const pieces = places.slice(1).map((end, at) => text.slice(places[at], end));
        expect(read(pieces, options)).toEqual(expected);
      }),
      { numRuns: 30 },
    );
  });

  test('is shown as soon as it can be nothing else', () => {
    const reader = new OutputParser({ thinking: false, calls: taggedCalls, functions: [] });
    expect(reader.push('so')).toEqual([{ kind: 'content', text: 'so' }]);
    expect(reader.push(' <tool')).toEqual([]);
    expect(reader.push('box')).toEqual([{ kind: 'content', text: ' <toolbox' }]);
    expect(reader.push('<tool_call>{"name":"add","arguments":')).toEqual([]);
    expect(reader.push('{"a"')).toEqual([
      { kind: 'call', index: 0, name: 'add' },
      { kind: 'arguments', index: 0, text: '{"a"' },
    ]);
    expect(reader.callsAreWhole).toBe(false);
    expect(reader.push(':1}')).toEqual([{ kind: 'arguments', index: 0, text: ':1}' }]);
    expect(reader.callsAreWhole).toBe(true);
    expect(reader.push('}</tool_call>')).toEqual([]);
    expect(reader.callCount).toBe(1);
  });

  test('is no call to make where a stop text or the bound has cut its arguments', () => {
    const ended = (text: string, end: Partial<GenerateResult>) => {
      const reader = new OutputParser({ thinking: false, calls: taggedCalls, functions: ['f'] });
      const counts = { promptTokens: 1, cachedTokens: 0, completionTokens: 1 };
      return finished({ ...remoteOutput([], 'stop', counts).result, text, ...end }, reader).finish;
    };
    const cut = '<tool_call>{"name":"f","arguments":{"a":';
    expect(ended(cut, { stopText: '1' })).toBe('stop');
    expect(ended(cut, { finish: 'length' })).toBe('length');
    expect(ended(`${cut}1}`, { stopText: '}' })).toBe('tool_calls');
    expect(ended(`${cut}1}}</tool_call>`, {})).toBe('tool_calls');
  });
});
