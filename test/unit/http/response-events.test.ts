import { expect, test } from 'bun:test';
import { itemId, placeOfItem } from '../../../src/http/clients/responses/item-id.ts';
import { ResponseEvents } from '../../../src/http/clients/responses/response-events.ts';
import type { OutputDelta } from '../../../src/inference/generation/output-parser.ts';
import { remoteOutput } from '../../../src/inference/providers/remote/remote-output.ts';
import type { FinishReason } from '../../../src/protocol/inference/finish-reasons.ts';

function ended(deltas: readonly OutputDelta[], finish: FinishReason) {
  const events = new ResponseEvents({ id: 'resp_1' }, () => 'x');
  const counts = { promptTokens: 1, cachedTokens: 0, completionTokens: 1 };
  const { events: told, response } = events.end(remoteOutput(deltas, finish, counts), () => true);
  const done = told.flatMap((event) => (event.type === 'response.output_item.done' ? [event] : []));
  return { done, response };
}

test('a call of a response that is cut in its arguments is incomplete, and what came before it is not', () => {
  const deltas: OutputDelta[] = [
    { kind: 'content', text: 'so' },
    { kind: 'call', index: 0, name: 'f' },
    { kind: 'arguments', index: 0, text: '{"a":' },
  ];
  const output = [
    { type: 'message', status: 'completed' },
    { type: 'function_call', status: 'incomplete', arguments: '{"a":' },
  ];
  const { done, response } = ended(deltas, 'length');
  expect(response).toMatchObject({ status: 'incomplete', output });
  expect(done).toMatchObject(output.map((item) => ({ item })));
  expect(ended(deltas, 'tool_calls').response).toMatchObject({
    status: 'completed',
    output: output.map((item) => ({ ...item, status: 'completed' })),
  });
});

test('an answer of no words is an empty message, after thoughts too, unless it was cut in them', () => {
  const message = { type: 'message', status: 'completed', content: [{ type: 'output_text', text: '' }] };
  expect(ended([], 'stop')).toMatchObject({ done: [{ item: message }], response: { output: [message] } });
  const thoughts: OutputDelta[] = [{ kind: 'reasoning', text: 'hmm' }];
  expect(ended(thoughts, 'stop').response).toMatchObject({ output: [{ type: 'reasoning' }, message] });
  expect(ended(thoughts, 'length').response).toHaveProperty('output.length', 1);
});

test('tokens of thoughts are counted apart, and are all of them where the thoughts were cut', () => {
  const thoughts: OutputDelta[] = [{ kind: 'reasoning', text: 'hmm' }];
  const counted = (response: object) => (response as { usage: object }).usage;
  expect(counted(ended(thoughts, 'length').response)).toMatchObject({ output_tokens_details: { reasoning_tokens: 1 } });
  expect(counted(ended([], 'stop').response)).toMatchObject({ output_tokens_details: { reasoning_tokens: 0 } });
});

test('the id of an item tells where it is found, and no other text does', () => {
  const responseId = `resp_${'0a'.repeat(16)}`;
  const places = (['input', 'output'] as const).map((of) => ({ responseId, of, index: 12 }));
  for (const place of places) expect(placeOfItem(itemId('msg', place))).toEqual(place);
  for (const id of [
    '',
    'msg_1',
    `msg_${'0a'.repeat(16)}`,
    `${itemId('msg', { responseId, of: 'output', index: 1 })}x`,
  ]) {
    expect(placeOfItem(id)).toBeUndefined();
  }
});
