import { expect, test } from 'bun:test';
import { ResponseEvents } from '../../../src/http/clients/responses/response-events.ts';
import type { OutputDelta } from '../../../src/inference/generation/output-parser.ts';
import { remoteOutput } from '../../../src/inference/providers/remote/remote-output.ts';
import type { FinishReason } from '../../../src/protocol/inference/generate.ts';

function ended(deltas: readonly OutputDelta[], finish: FinishReason) {
  const events = new ResponseEvents({}, () => 'x');
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
