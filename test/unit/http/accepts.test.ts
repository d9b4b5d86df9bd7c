import { expect, test } from 'bun:test';
import { accepts } from '../../../src/http/listener/accepts.ts';
import { msgpackName } from '../../../src/http/listener/msgpack/msgpack-answer.ts';

test.each([
  [null, false],
  ['*/*', false],
  ['application/json', false],
  ['application/msgpack', true],
  ['application/json, application/x-msgpack;q=0.5', true],
  ['application/json, application/msgpack;q=0', false],
  ['application/msgpack; q=0.0, */*', false],
  ['application/msgpack;q=0;v=1', false],
  ['application/msgpack;q=0, application/x-msgpack', true],
  ['text/html;q=0, application/msgpack;q=0.01', true],
])('%s asks for MessagePack: %p', (header, expected) => {
  expect(accepts(header, msgpackName)).toBe(expected);
});
