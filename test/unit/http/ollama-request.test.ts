import { expect, test } from 'bun:test';
import { readOllamaChat } from '../../../src/http/clients/ollama/chat-request.ts';
import type { OllamaChat, OllamaMessage } from '../../../src/protocol/clients/ollama.ts';

const chat = (messages: OllamaMessage[], more: Partial<OllamaChat> = {}) =>
  readOllamaChat({ model: 'm', messages, ...more });
const call = (name: string) => ({ function: { name, arguments: {} } });
const user: OllamaMessage = { role: 'user', content: 'go' };

test('results of functions in Ollama’s shape belong to the calls that they name, whatever their order', () => {
  const calls = { role: 'assistant', tool_calls: [call('f'), call('g'), call('f')] };
  const result = (content: string, tool_name?: string) => ({
    role: 'tool',
    content,
    ...(tool_name === undefined ? {} : { tool_name }),
  });
  const ids = (...results: OllamaMessage[]) =>
    chat([user, calls, ...results])
      .messages.slice(2)
      .map(({ content, callId }) => [content, callId]);
  expect(ids(result('g', 'g'), result('f1', 'f'), result('f2', 'f'))).toEqual([
    ['g', 'call_1_1'],
    ['f1', 'call_1_0'],
    ['f2', 'call_1_2'],
  ]);
  expect(ids(result('1'), result('2'))).toEqual([
    ['1', 'call_1_0'],
    ['2', 'call_1_1'],
  ]);
});

test('a way to choose tokens that is not there is refused, and not where it is off', () => {
  const { sampling } = chat([user]);
  expect(chat([user], { options: { mirostat: 0, typical_p: 1, tfs_z: 1 } }).sampling).toEqual(sampling);
  for (const options of [{ mirostat: 2 }, { typical_p: 0.7 }, { tfs_z: 2 }]) {
    const [name] = Object.keys(options);
    expect(() => chat([user], { options })).toThrow(`options.${name}: tokens are not chosen this way here`);
  }
});

test('the effort of thinking reaches the template; alternatives need log probabilities', () => {
  expect(chat([user], { think: 'high' })).toMatchObject({
    enableThinking: true,
    templateVariables: { reasoning_effort: 'high' },
  });
  expect(chat([user], { think: true }).templateVariables).toEqual({});
  expect(chat([user], { logprobs: true, top_logprobs: 2 }).topLogprobs).toBe(2);
  expect(() => chat([user], { top_logprobs: 2 })).toThrow('needs logprobs: true');
});
