import { describe, expect, test } from 'bun:test';
import { readChatRequest } from '../../../../src/http/inference/generation/chat-request.ts';
import { checkValue } from '../../../../src/http/routing/json-reader.ts';
import { outputConstraint } from '../../../../src/inference/generation/output-constraint.ts';
import type { Thinking } from '../../../../src/inference/generation/prompt/chat-prompt.ts';
import {
  type ToolCallFormat,
  taggedCalls,
  toolCallFormatOf,
} from '../../../../src/inference/generation/tools/tool-call-format.ts';
import { generateRequestSchema } from '../../../../src/protocol/inference/generate.ts';
import { Gbnf } from '../../../support/grammar/gbnf.ts';

function constrain(more: object, thinking: Thinking = 'off', calls: ToolCallFormat = taggedCalls) {
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], ...more };
  const request = readChatRequest(checkValue(body, generateRequestSchema));
  const constraint = outputConstraint(request, { thinking, calls });
  return {
    ...constraint,
    after: constraint?.after,
    accepts: (text: string) => new Gbnf(constraint?.grammar ?? '').accepts(text),
  };
}

const integers = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };
const unheardOf = { type: 'object', properties: { a: { not: {} } } };
const tool = (name: string, parameters?: object, strict?: boolean) => ({
  type: 'function',
  function: { name, parameters, strict },
});
const tools = [tool('add', integers), tool('now')];
const add = '{"name": "add", "arguments": {"a": 1}}';
const now = '{"name":"now","arguments":{}}';

describe('what an output is held to', () => {
  test('is nothing without tools and a format', () => {
    expect(constrain({}).after).toBeUndefined();
    expect(constrain({}).grammar).toBeUndefined();
  });

  test('with tools to choose from is free until a call begins', () => {
    const { after, accepts } = constrain({ tools });
    expect(after).toBe('<tool_call>');
    expect(accepts(`\n${add}\n</tool_call>`)).toBe(true);
    expect(accepts(`${add}</tool_call>\n<tool_call>${now}</tool_call>`)).toBe(true);
    expect(accepts('{"name":"gone","arguments":{}}</tool_call>')).toBe(false);
    expect(accepts('{"name":"add","arguments":{"a":"1"}}</tool_call>')).toBe(false);
    const alone = constrain({ tools, parallel_tool_calls: false });
    expect(alone.accepts(`${add}</tool_call><tool_call>${now}</tool_call>`)).toBe(false);
  });

  test('with a call that has to be made is that call, from the first token', () => {
    const required = constrain({ tools, tool_choice: 'required' });
    expect(required.after).toBeUndefined();
    expect(required.accepts(`<tool_call>${now}</tool_call>`)).toBe(true);
    expect(required.accepts('no')).toBe(false);
    const named = constrain({ tools, tool_choice: { type: 'function', function: { name: 'add' } } });
    expect(named.accepts(`<tool_call>${add}</tool_call>`)).toBe(true);
    expect(named.accepts(`<tool_call>${now}</tool_call>`)).toBe(false);
    expect(named.accepts(`<tool_call>${add}</tool_call><tool_call>${add}</tool_call>`)).toBe(false);
  });

  test('with a call that has to be made is one call, unless several are asked for', () => {
    const twice = `<tool_call>${add}</tool_call><tool_call>${now}</tool_call>`;
    expect(constrain({ tools, tool_choice: 'required' }).accepts(twice)).toBe(false);
    expect(constrain({ tools, tool_choice: 'required', parallel_tool_calls: true }).accepts(twice)).toBe(true);
  });

  test('has calls in the form of the template', () => {
    const form = (template: string) => toolCallFormatOf(`{{ tools }} ${template}`) as ToolCallFormat;
    const listed = form("'[TOOL_CALLS] ['");
    const free = constrain({ tools }, 'off', listed);
    expect([free.after, free.marks, free.accepts(` [${add}, ${now}]`), free.accepts(add)]).toEqual([
      '[TOOL_CALLS]',
      ['[TOOL_CALLS]'],
      true,
      false,
    ]);
    const demanded = constrain({ tools, tool_choice: 'required' }, 'off', listed);
    expect([`[TOOL_CALLS] [${add}]`, `[${add}]`].map(demanded.accepts)).toEqual([true, false]);
    const bare = form('{"name": function name, "parameters": dictionary}');
    const call = add.replace('arguments', 'parameters');
    const maybe = constrain({ tools }, 'off', bare);
    expect([maybe.after, maybe.atStart]).toEqual(['{"name"', true]);
    expect([call.slice(7), add.slice(7)].map(maybe.accepts)).toEqual([true, false]);
    expect(constrain({ tools, tool_choice: 'required' }, 'off', bare).accepts(call)).toBe(true);
  });

  const marked = ['[TOOL_CALLS]', 'add[ARGS]{"a": 1}', 'now[ARGS]{}', '[TOOL_CALLS]', ''] as const;
  const separated = [
    '<｜tool▁calls▁begin｜>',
    '<｜tool▁call▁begin｜>add<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>',
    '<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>',
    '',
    '<｜tool▁calls▁end｜>',
  ] as const;
  const fenced = [
    '<｜tool▁calls▁begin｜>',
    '<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{"a": 1}\n```<｜tool▁call▁end｜>',
    '<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>',
    '\n',
    '<｜tool▁calls▁end｜>',
  ] as const;

  test.each([
    ["'[TOOL_CALLS]' + f.name + '[ARGS]' + f.arguments", marked],
    ["'[TOOL_CALLS]' + f.name + '[CALL_ID]' + c.id + '[ARGS]' + f.arguments", marked],
    ["'<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + f.name + '<｜tool▁sep｜>' + f.arguments", separated],
    ["'<｜tool▁calls▁begin｜>' + c.type + '<｜tool▁sep｜>' + f.name + '\\n```json\\n' + f.arguments", fenced],
  ])('has names in front of arguments where %s has', (template, [open, first, second, join, end]) => {
    const form = toolCallFormatOf(`{{ tools }}{{ ${template} }}`);
    const free = constrain({ tools }, 'off', form);
    expect([free.after, free.marks?.includes(open)]).toEqual([open, true]);
    expect(free.accepts(`${first}${end}`)).toBe(true);
    expect(free.accepts(`${second}${join}${first}${end}`)).toBe(true);
    expect(free.accepts(`${first.replace('add', 'gone')}${end}`)).toBe(false);
    expect(free.accepts(`${first.replace('1', '"1"')}${end}`)).toBe(false);
    expect(free.accepts(first) && end !== '').toBe(false);
    const withId = first.replace('[ARGS]', '[CALL_ID]a1b2c3d4e[ARGS]');
    expect(free.accepts(`${withId}${end}`)).toBe(template.includes('CALL_ID') || withId === first);
    const demanded = constrain({ tools, tool_choice: 'required' }, 'off', form);
    expect([`${open}${second}${end}`, `${first}${end}`].map(demanded.accepts)).toEqual([true, false]);
    expect(demanded.accepts(`${open}${first}${join}${second}${end}`)).toBe(false);
  });

  test('with tools and a format is one of both', () => {
    const { after, accepts } = constrain({
      tools,
      response_format: { type: 'json_schema', json_schema: { schema: integers } },
    });
    expect(after).toBeUndefined();
    expect(['{"a": 2}', `<tool_call>${now}</tool_call>`, 'text', '{"b":2}'].map(accepts)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  test('leaves thoughts free, wherever they begin', () => {
    const format = { response_format: { type: 'json_object' } };
    const open = constrain(format, 'open').accepts;
    expect(['hm <</think>\n{}', 'a </think {</think>{}', '{}', 'hm</think>no'].map(open)).toEqual([
      true,
      true,
      false,
      false,
    ]);
    const possible = constrain(format, 'possible').accepts;
    expect(['<think>hm</think>\n\n{}', '{}', 'hm</think>{}'].map(possible)).toEqual([true, true, false]);
    expect(constrain({ grammar: 'root ::= "a"' }, 'open').after).toBe('</think>');
  });

  test('refuses strict parameters that cannot be enforced, and lets others be any object', () => {
    const loose = constrain({ tools: [tool('f', unheardOf)] });
    expect(loose.accepts('{"name":"f","arguments":{"a":[1]}}</tool_call>')).toBe(true);
    expect(() => constrain({ tools: [tool('f', unheardOf, true)] })).toThrow(/function "f".*"not"/);
  });

  test('lets a function without parameters be called without arguments alone', () => {
    const called = (parameters: object | undefined, given: string) =>
      constrain({ tools: [tool('f', parameters)] }).accepts(`{"name":"f","arguments":${given}}</tool_call>`);
    const none = [undefined, {}, { type: 'object', properties: {}, required: [], title: 'f' }];
    expect(none.map((each) => [called(each, '{}'), called(each, '{"a":1}')])).toEqual(none.map(() => [true, false]));
    const any = [{ type: 'object' }, { type: 'object', properties: {}, additionalProperties: true }];
    expect(any.map((each) => [called(each, '{}'), called(each, '{"a":1}')])).toEqual(any.map(() => [true, true]));
  });

  test('lets arguments be any objects where all functions together are too many for a grammar', () => {
    const wide = (prefix: number) => ({
      type: 'object',
      properties: Object.fromEntries(
        Array.from({ length: 200 }, (_, at) => [`member${prefix}x${at}`, { type: 'null' }]),
      ),
    });
    const many = (strict: boolean) => ({
      tools: Array.from({ length: 40 }, (_, at) => tool(`f${at}`, wide(at), strict)),
    });
    expect(() => constrain(many(true))).toThrow('the grammar');
    const { accepts } = constrain(many(false));
    expect(accepts('{"name":"f39","arguments":{"free":1}}</tool_call>')).toBe(true);
    expect(accepts('{"name":"f40","arguments":{}}</tool_call>')).toBe(false);
  });
});
