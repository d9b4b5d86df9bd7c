import { expect, test } from 'bun:test';
import { readOllamaChat } from '../../../src/http/clients/ollama/chat-request.ts';
import type { OllamaChat, OllamaMessage } from '../../../src/protocol/clients/ollama.ts';
import { threadMs } from '../../support/thread-time.ts';

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
  expect(ids(result('1', 'f'), result('?', 'h'), result('3'), result('4', 'f'))).toEqual([
    ['1', 'call_1_0'],
    ['?', 'call_1_1'],
    ['3', 'call_1_2'],
    ['4', 'call_5'],
  ]);
});

test('results of very many functions find their calls in time by their number', () => {
  const [turns, each] = [160, 250];
  const calls = Array.from({ length: turns }, (_turn, turn) => ({
    role: 'assistant',
    tool_calls: Array.from({ length: each }, (_call, at) => call(`f${turn * each + at}`)),
  }));
  const results = Array.from({ length: 16_000 }, (_result, at) => ({
    role: 'tool',
    content: '',
    tool_name: `f${turns * each - 1 - at}`,
  }));
  const fromMs = threadMs();
  expect(chat([user, ...calls, ...results]).messages.at(-1)?.callId).toBe('call_97_0');
  expect(threadMs() - fromMs).toBeLessThan(2_000);
});

test('a way to choose tokens that is not there is refused, and not where it is off', () => {
  const { sampling } = chat([user]);
  expect(chat([user], { options: { mirostat: 0, typical_p: 1, tfs_z: 1 } }).sampling).toEqual(sampling);
  for (const options of [{ mirostat: 2 }, { typical_p: 0.7 }, { tfs_z: 2 }]) {
    const [name] = Object.keys(options);
    expect(() => chat([user], { options })).toThrow(`options.${name}: tokens are not chosen this way here`);
  }
});

test('an output is bounded by a number of tokens above zero alone, as Ollama has it', () => {
  const bounds = [5, 1, 0, -1, -2].map((num_predict) => chat([user], { options: { num_predict } }).tokensMax);
  expect(bounds).toEqual([5, 1, undefined, undefined, undefined]);
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
