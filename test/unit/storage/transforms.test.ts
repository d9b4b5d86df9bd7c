import { describe, expect, test } from 'bun:test';
import { transformDocument } from '../../../src/storage/evaluation/transform-document.ts';
import { applyOperations, jsonEquals, type TransformOperation } from '../../../src/storage/evaluation/transforms.ts';

const now = '2026-01-02T00:00:00Z';

function transformed(before: string, ...operations: TransformOperation[]): string {
  const document = JSON.parse(before);
  applyOperations(document, operations, now);
  return JSON.stringify(document);
}

const cases: [what: string, before: string, operation: TransformOperation, after: string][] = [
  ['$set assigns', '{"a":1}', { op: '$set', path: 'a', value: [1] }, '{"a":[1]}'],
  ['$set makes objects on the way', '{}', { op: '$set', path: '$.a.b.c', value: 1 }, '{"a":{"b":{"c":1}}}'],
  ['$set does not go through a scalar', '{"a":1}', { op: '$set', path: 'a.b', value: 1 }, '{"a":1}'],
  ['$set does not go through an array', '{"a":[1]}', { op: '$set', path: 'a.0', value: 2 }, '{"a":[1]}'],
  ['$set takes null', '{"a":1}', { op: '$set', path: 'a', value: null }, '{"a":null}'],
  ['$unset removes', '{"a":{"b":1,"c":2}}', { op: '$unset', path: 'a.b' }, '{"a":{"c":2}}'],
  ['$unset of nothing makes nothing', '{}', { op: '$unset', path: 'a.b' }, '{}'],
  ['$inc adds', '{"a":1}', { op: '$inc', path: 'a', value: 2.5 }, '{"a":3.5}'],
  ['$inc counts missing as 0', '{}', { op: '$inc', path: 'a.b', value: 2 }, '{"a":{"b":2}}'],
  ['$inc leaves a string', '{"a":"1"}', { op: '$inc', path: 'a', value: 2 }, '{"a":"1"}'],
  ['$inc leaves null', '{"a":null}', { op: '$inc', path: 'a', value: 2 }, '{"a":null}'],
  ['$inc does not overflow', '{"a":1.7e308}', { op: '$inc', path: 'a', value: 1.7e308 }, '{"a":1.7e+308}'],
  ['$mul multiplies', '{"a":3}', { op: '$mul', path: 'a', value: 2 }, '{"a":6}'],
  ['$mul of missing is 0', '{}', { op: '$mul', path: 'a', value: 2 }, '{"a":0}'],
  ['$mul leaves an array', '{"a":[3]}', { op: '$mul', path: 'a', value: 2 }, '{"a":[3]}'],
  ['$min keeps the lower', '{"a":3}', { op: '$min', path: 'a', value: 2 }, '{"a":2}'],
  ['$min keeps what is lower', '{"a":1}', { op: '$min', path: 'a', value: 2 }, '{"a":1}'],
  ['$min of missing takes the value', '{}', { op: '$min', path: 'a', value: 2 }, '{"a":2}'],
  ['$max keeps the higher', '{"a":3}', { op: '$max', path: 'a', value: 9 }, '{"a":9}'],
  ['$max compares strings by code point', '{"a":"\uffff"}', { op: '$max', path: 'a', value: '😀' }, '{"a":"😀"}'],
  ['$max does not mix kinds', '{"a":"x"}', { op: '$max', path: 'a', value: 9 }, '{"a":"x"}'],
  ['$push appends', '{"a":[1]}', { op: '$push', path: 'a', value: 1 }, '{"a":[1,1]}'],
  ['$push makes the array', '{}', { op: '$push', path: 'a', value: 1 }, '{"a":[1]}'],
  ['$push leaves an object', '{"a":{}}', { op: '$push', path: 'a', value: 1 }, '{"a":{}}'],
  ['$addToSet appends what is new', '{"a":[1]}', { op: '$addToSet', path: 'a', value: 2 }, '{"a":[1,2]}'],
  [
    '$addToSet knows equal objects',
    '{"a":[{"x":1,"y":2}]}',
    { op: '$addToSet', path: 'a', value: { y: 2, x: 1 } },
    '{"a":[{"x":1,"y":2}]}',
  ],
  ['$pull removes all equal', '{"a":[1,2,1,[1]]}', { op: '$pull', path: 'a', value: 1 }, '{"a":[2,[1]]}'],
  ['$pull of missing makes nothing', '{}', { op: '$pull', path: 'a', value: 1 }, '{}'],
  ['$pop 1 drops the last', '{"a":[1,2,3]}', { op: '$pop', path: 'a', value: 1 }, '{"a":[1,2]}'],
  ['$pop -1 drops the first', '{"a":[1,2,3]}', { op: '$pop', path: 'a', value: -1 }, '{"a":[2,3]}'],
  ['$pop leaves a string', '{"a":"xy"}', { op: '$pop', path: 'a', value: 1 }, '{"a":"xy"}'],
  ['$currentDate is the request time', '{}', { op: '$currentDate', path: 'a' }, `{"a":"${now}"}`],
  ['$rename moves', '{"a":{"b":1}}', { op: '$rename', path: 'a.b', value: 'c.d' }, '{"a":{},"c":{"d":1}}'],
  ['$rename into itself', '{"a":1}', { op: '$rename', path: 'a', value: 'a.b' }, '{"a":{"b":1}}'],
  ['$rename to a blocked path', '{"a":1,"b":2}', { op: '$rename', path: 'a', value: 'b.c' }, '{"b":2,"a":1}'],
  ['$rename of nothing', '{"a":1}', { op: '$rename', path: 'x', value: 'y' }, '{"a":1}'],
  ['an unknown operation', '{"a":1}', { op: '$shout', path: 'a' }, '{"a":1}'],
];

describe('transform operations', () => {
  test.each(cases)('%s', (_, before, operation, after) => {
    expect(transformed(before, operation)).toBe(after);
  });

  test.each([
    { op: '$inc', path: 'a', value: 2 },
    { op: '$mul', path: 'a', value: -3 },
  ])('$op refuses to round an integer', (operation) => {
    for (const held of [2 ** 53 - 1, 2 ** 53]) {
      expect(() => transformed(`{"a":${held}}`, operation)).toThrow('beyond 2^53');
    }
    expect(transformed('{"a":1e20}', operation)).toContain('00000000');
  });

  test.each<[held: number, operation: TransformOperation, after: number]>([
    [2 ** 53 - 1, { op: '$inc', path: 'a', value: 1 }, 2 ** 53],
    [1 - 2 ** 53, { op: '$inc', path: 'a', value: -1 }, -(2 ** 53)],
    [2 ** 52, { op: '$mul', path: 'a', value: -2 }, -(2 ** 53)],
    [2 ** 53, { op: '$inc', path: 'a', value: 0 }, 2 ** 53],
  ])('%d may become exactly 2^53', (held, operation, after) => {
    expect(JSON.parse(transformed(`{"a":${held}}`, operation))).toEqual({ a: after });
  });

  test('a large number stays one that can be written', () => {
    const held = new TextEncoder().encode('{"a":1e20,"b":[-12345678901234567890.0],"n":1}');
    const row = {
      body: held,
      crc: Bun.hash.crc32(held),
      ttlBaseMs: 0,
      writtenMs: 0,
      ordinal: 0,
      sequence: 1,
      bodyBytes: held.length,
    };
    const operations = JSON.stringify({ operations: [{ op: '$inc', path: 'n', value: 1 }] });
    const context = { rangeId: 1, key: 'k', timeMs: 0, timestamp: now, ttlField: undefined };
    const after = transformDocument(row, new TextEncoder().encode(operations), context);
    expect(after === 'unfit' ? after : new TextDecoder().decode(after?.body)).toBe(
      '{"a":1e+20,"b":[-1.2345678901234567e+19],"n":2}',
    );
  });

  const counted: [what: string, before: string, operation: TransformOperation, applied: number, unfit: number][] = [
    ['a number added to a string', '{"a":"x"}', { op: '$inc', path: 'a', value: 1 }, 0, 1],
    ['a path through a scalar', '{"a":1}', { op: '$set', path: 'a.b', value: 1 }, 0, 1],
    ['an element pushed to an object', '{"a":{}}', { op: '$push', path: 'a', value: 1 }, 0, 1],
    ['a move to below a scalar', '{"a":1,"b":2}', { op: '$rename', path: 'a', value: 'b.c' }, 0, 1],
    ['a removal of nothing', '{}', { op: '$unset', path: 'a' }, 0, 0],
    ['a move of nothing', '{}', { op: '$rename', path: 'a', value: 'b' }, 0, 0],
    ['elements taken from nothing', '{}', { op: '$pull', path: 'a', value: 1 }, 0, 0],
    ['elements taken from a number', '{"a":1}', { op: '$pop', path: 'a', value: 1 }, 0, 1],
    ['a number added to nothing', '{}', { op: '$inc', path: 'a', value: 1 }, 1, 0],
  ];
  test.each(counted)('%s counts as it went', (_, before, operation, applied, unfit) => {
    expect(applyOperations(JSON.parse(before), [operation], now)).toEqual({ applied, unfit });
  });

  test('one that does not fit leaves the others in place', () => {
    const after = transformed(
      '{"n":1,"s":"x"}',
      { op: '$inc', path: 'n', value: 1 },
      { op: '$inc', path: 's', value: 1 },
      { op: '$set', path: 't', value: true },
    );
    expect(after).toBe('{"n":2,"s":"x","t":true}');
  });

  test('__proto__ and constructor are ordinary members', () => {
    const after = transformed(
      '{"__proto__":{"polluted":1}}',
      { op: '$inc', path: '__proto__.polluted', value: 1 },
      { op: '$set', path: 'constructor.prototype.polluted', value: 1 },
      { op: '$set', path: 'a.__proto__.b', value: 1 },
      { op: '$rename', path: 'toString', value: 'stolen' },
    );
    expect(after).toBe(
      '{"__proto__":{"polluted":2},"constructor":{"prototype":{"polluted":1}},"a":{"__proto__":{"b":1}}}',
    );
    expect('polluted' in {}).toBe(false);
  });
});

test('JSON equality ignores member order and nothing else', () => {
  expect(jsonEquals(JSON.parse('{"a":1,"b":[{}]}'), JSON.parse('{"b":[{}],"a":1}'))).toBe(true);
  for (const [left, right] of [
    ['[1,2]', '[2,1]'],
    ['{}', '[]'],
    ['{"a":null}', '{}'],
    ['{"__proto__":1}', '{"a":1}'],
    ['1', '"1"'],
    ['null', '0'],
  ] as const) {
    expect(jsonEquals(JSON.parse(left), JSON.parse(right))).toBe(false);
  }
});
