import { describe, expect, test } from 'bun:test';
import { decodeBase64, parseDataUri } from '../../../src/inference/media/data-uri.ts';

const decoded = (text: string) => Buffer.from(decodeBase64(text, 'the image')).toString('latin1');

test.each([
  ['data:image/png;base64,TWFu', 'image/png', 'Man'],
  ['data:text/html,<p>a%20b,%E4%BD%A0 ü</p>', 'text/html', '<p>a b,你 ü</p>'],
  ['data:text/plain;charset=utf-8,100%', 'text/plain', '100%'],
  ['data:,', undefined, ''],
])('%s holds its type and its data', (uri, mediaType, text) => {
  const { base64, ...rest } = parseDataUri(uri, 'the image');
  expect([rest, Buffer.from(decodeBase64(base64, 'the image')).toString()]).toEqual([{ mediaType }, text]);
});

test('a data URI without a comma near its begin is refused', () => {
  for (const uri of ['data:image/png;base64', `data:${'x'.repeat(300)},a`])
    expect(() => parseDataUri(uri, 'the image')).toThrow('a data URI must read');
});

describe('base64 of media', () => {
  test('is decoded with its padding', () => {
    expect(['', 'TQ==', 'TWE=', 'TWFu', 'TWFu+/8='].map(decoded)).toEqual(['', 'M', 'Ma', 'Man', 'Man\xfb\xff']);
  });

  test.each([
    ['padding is missing', 'TQ'],
    ['padding stands in the middle', 'TQ==TWFu'],
    ['there is too much padding', 'TWFu===='],
    ['the last bits are not zero', 'TR=='],
    ['the alphabet is that of addresses', 'TWFu-_8='],
    ['there is a space', 'TW Fu'],
    ['there is a line break', 'TWFu\nTWFu'],
    ['something else is in it', 'TWF%'],
    ['something beyond Latin is in it', 'TWF🎉TWF'],
  ])('is refused when %s', (_why, text) => {
    expect(() => decodeBase64(text, 'the image')).toThrow('the image is not base64');
  });
});
