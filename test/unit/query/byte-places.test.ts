import { expect, test } from 'bun:test';
import { BytePlaces } from '../../../src/query/request/projection/byte-places.ts';

test('a place in characters is one in bytes, as long as the text is the one that was cut', () => {
  const text = 'aé😀z';
  const places = new BytePlaces(text);
  expect(places.of({ start: 1, end: 3 }, 'é😀')).toEqual({ start: 1, end: 7 });
  expect(places.of({ start: 3, end: 4 }, 'z')).toEqual({ start: 7, end: 8 });
  expect(places.of({ start: 1, end: 3 }, 'e😀')).toBeUndefined();
  expect(places.of({ start: 3, end: 5 }, 'z')).toBeUndefined();
  expect(new BytePlaces('plain').of({ start: 2, end: 5 }, 'ain')).toEqual({ start: 2, end: 5 });
  expect(new BytePlaces('plain').of({ start: 2, end: 9 }, 'ain')).toBeUndefined();
});
