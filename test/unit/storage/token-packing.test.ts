import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { must } from '../../../src/lib/assert.ts';
import { dictionaryOf, shortCodes, TokenDictionary, tokensMax } from '../../../src/storage/packing/token-dictionary.ts';
import { TokenPacker } from '../../../src/storage/packing/token-packer.ts';
import { trainTokens } from '../../../src/storage/packing/token-training.ts';

const encoder = new TextEncoder();
const words = ['amber', 'birch', 'cedar', 'hölzern', '🌲'];
const bodyOf = (n: number) => {
  const text = Array.from({ length: 12 }, (_, at) => words[(n * 7 + at * at) % words.length]).join(' ');
  return encoder.encode(JSON.stringify({ title: `number ${n}`, text }));
};
const sample = Array.from({ length: 500 }, (_, n) => bodyOf(n));
const stored = dictionaryOf(trainTokens(sample));
const dictionary = must(TokenDictionary.read(stored), 'a dictionary that was just made');
const packer = new TokenPacker(dictionary);

function packed(body: Uint8Array): Uint8Array {
  const into = new Uint8Array(2 * body.byteLength + 2);
  return into.subarray(0, must(packer.pack(body, into, 0), 'room for twice the bytes'));
}

function unpacked(codes: Uint8Array, bytes: number): Uint8Array | undefined {
  const into = new Uint8Array(bytes);
  return dictionary.unpack(codes, 0, into) ? into : undefined;
}

test('bodies like those of the sample take less than a third, and come back', () => {
  for (const n of [3, 777, 12_345]) {
    const body = bodyOf(n);
    const codes = packed(body);
    expect(codes.byteLength).toBeLessThan(body.byteLength / 3);
    expect(unpacked(codes, body.byteLength)).toEqual(body);
  }
});

test('any bytes come back', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.string({ unit: 'binary' }).map((text) => encoder.encode(text)),
      ),
      (body) => expect(unpacked(packed(body), body.byteLength)).toEqual(new Uint8Array(body)),
    ),
  );
});

test('what is not a dictionary is not read as one, and any bytes are read without harm', () => {
  expect(TokenDictionary.read(new Uint8Array(0))).toBeUndefined();
  expect(TokenDictionary.read(stored.subarray(0, -1))).toBeUndefined();
  expect(TokenDictionary.read(Uint8Array.of(...stored, 0))).toBeUndefined();
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.uint8Array({ maxLength: 64 }), (bytes, codes) => {
      TokenDictionary.read(bytes)?.unpack(codes, 0, new Uint8Array(100));
    }),
  );
});

test('codes that name no token, end in the middle or mean another number of bytes are refused', () => {
  const body = bodyOf(1);
  const codes = packed(body);
  expect(unpacked(codes, body.byteLength - 1)).toBeUndefined();
  expect(unpacked(codes, body.byteLength + 1)).toBeUndefined();
  expect(unpacked(Uint8Array.of(...codes, shortCodes), body.byteLength)).toBeUndefined();
  expect(dictionary.tokens().length).toBeLessThan(tokensMax);
  expect(unpacked(Uint8Array.of(255, 255), 1)).toBeUndefined();
});

test('a body that is not made smaller does not fit', () => {
  const body = Uint8Array.from({ length: 100 }, (_, at) => 128 + at);
  expect(packer.pack(body, new Uint8Array(100), 1)).toBeUndefined();
});

test('a dictionary has every single byte, also of an empty sample, and the same for the same sample', () => {
  expect(dictionary.hasAllBytes()).toBe(true);
  expect(TokenDictionary.read(dictionaryOf(trainTokens([])))?.hasAllBytes()).toBe(true);
  expect(dictionaryOf(trainTokens(sample))).toEqual(stored);
  expect(TokenDictionary.read(dictionaryOf([Uint8Array.of(1)]))?.hasAllBytes()).toBe(false);
});
