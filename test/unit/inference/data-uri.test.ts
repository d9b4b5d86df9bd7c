import { describe, expect, test } from 'bun:test';
import { decodeBase64 } from '../../../src/inference/media/data-uri.ts';

const decoded = (text: string) => Buffer.from(decodeBase64(text, 'the image')).toString('latin1');

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
