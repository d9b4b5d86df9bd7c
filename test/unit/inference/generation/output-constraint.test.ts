import { describe, expect, test } from 'bun:test';
import { checkValue } from '../../../../src/http/json-reader.ts';
import type { Thinking } from '../../../../src/inference/generation/chat-prompt.ts';
import { readGenerationRequest } from '../../../../src/inference/generation/generation-request.ts';
import { outputConstraint } from '../../../../src/inference/generation/output-constraint.ts';
import { generateRequestSchema } from '../../../../src/protocol/inference/generate.ts';
import { Gbnf } from '../../../support/gbnf.ts';

function constrain(more: object, thinking: Thinking = 'off') {
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], ...more };
  const constraint = outputConstraint(readGenerationRequest(checkValue(body, generateRequestSchema)), thinking);
  return { after: constraint?.after, accepts: (text: string) => new Gbnf(constraint?.grammar ?? '').accepts(text) };
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
    expect(
      outputConstraint(
        readGenerationRequest(
          checkValue({ model: 'm', messages: [{ role: 'user', content: 'x' }] }, generateRequestSchema),
        ),
        'off',
      ),
    ).toBeUndefined();
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
