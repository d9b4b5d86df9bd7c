import { expect, test } from 'bun:test';
import { repeatedKey } from '../../../src/config/repeated-keys.ts';

const yaml = (...lines: string[]) => repeatedKey(lines.join('\n'), 'yaml');

test('a key is one of its own mapping: those of items, of siblings and of texts are others', () => {
  expect(yaml('a:', '  x: 1', 'b:', '  x: 2', '  y:', '    x: 3', 'c: {x: 1}')).toBeUndefined();
  expect(yaml('list:', '- x: 1', '  y: 2', '- x: 3', '  y: 4', 'x: 5')).toBeUndefined();
  expect(yaml('list:', '  - - x: 1', '    - x: 2', '  - x: 3')).toBeUndefined();
  expect(yaml('text: |', '  x: 1', '  x: 2', 'texts:', '  - >-', '    x: 1', '    x: 2')).toBeUndefined();
  expect(yaml('a: "one', '  x: 1', '  x: 2"', 'b: {p: 1,', '  q: 2}', "c: 'x: 1'")).toBeUndefined();
  expect(yaml('# x: 1', 'x: http://h:1/x', '', '---', 'y: a # x: 2')).toBeUndefined();
});

test('the first key that is there twice is named with its place', () => {
  expect(yaml('a:', '  b:', '    c: 1', '  d: 2', '  b:', '    e: 1')).toBe('a.b');
  expect(yaml('list:', '  - x: 1', '    y: 2', '    x: 3')).toBe('list.x');
  expect(yaml('a:', '  x: |', '    text', '  x: 2')).toBe('a.x');
  expect(yaml("'a b': 1", 'c: 2', '"a b": 3')).toBe('a b');
  expect(repeatedKey('{"a": [{"b": 1}, {"b": "}", "c": {"b": 1}, "c": 2}]}', 'json')).toBe('a.c');
  expect(repeatedKey('{"a": {"b": "a", "c": "{"}, "b": {"a": 1}}', 'json')).toBeUndefined();
});
