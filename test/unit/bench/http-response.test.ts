import { describe, expect, test } from 'bun:test';
import { requestBytes } from '../../../bench/client/http-connection.ts';
import { HttpResponseReader } from '../../../bench/client/http-response.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');
const text = (body: Uint8Array | undefined) => Buffer.from(body ?? []).toString('latin1');

/** Feeds the message in every possible pair of pieces; each must give the same response. */
function inTwoPieces(message: string) {
  return Array.from({ length: message.length - 1 }, (_, cut) => {
    const reader = new HttpResponseReader();
    return reader.push(bytes(message.slice(0, cut + 1))) ?? reader.push(bytes(message.slice(cut + 1)));
  });
}

describe('HttpResponseReader', () => {
  test('reads a body of known length, however the bytes are cut', () => {
    for (const response of inTwoPieces('HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello')) {
      expect(response?.status).toBe(201);
      expect(text(response?.body)).toBe('hello');
    }
  });

  test('reads a chunked body, however the bytes are cut', () => {
    const message = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n';
    for (const response of inTwoPieces(message)) expect(text(response?.body)).toBe('abcde');
  });

  test('ends a 204 at its head and is then ready for the next response', () => {
    const reader = new HttpResponseReader();
    expect(reader.push(bytes('HTTP/1.1 204 No Content\r\n\r\n'))?.status).toBe(204);
    expect(reader.push(bytes('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'))?.status).toBe(200);
  });

  test('refuses bytes after the end and bodies without a length', () => {
    const reader = () => new HttpResponseReader();
    expect(() => reader().push(bytes('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab'))).toThrow(
      '1 bytes after the end',
    );
    expect(() => reader().push(bytes('HTTP/1.1 200 OK\r\n\r\n'))).toThrow('without a length');
  });
});

describe('requestBytes', () => {
  test('is a whole message whose length counts bytes', () => {
    expect(Buffer.from(requestBytes('POST', '/x', '{"a":"é"}')).toString('utf8')).toBe(
      'POST /x HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{"a":"é"}',
    );
    expect(Buffer.from(requestBytes('GET', '/x')).toString()).toBe(
      'GET /x HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\n\r\n',
    );
  });
});
