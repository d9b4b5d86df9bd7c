import { afterEach, describe, expect, test } from 'bun:test';
import { closeSync, openSync } from 'node:fs';
import { must } from '../../../src/lib/assert.ts';
import { LargeArrays } from '../../../src/model-host/child/large-arrays.ts';
import { openMemoryFile } from '../../../src/model-host/child/memory-file.ts';

const files: number[] = [];
afterEach(() => {
  for (const file of files.splice(0)) closeSync(file);
});

function open(): number {
  const file = must(openMemoryFile(), 'there is a place for temporary files');
  files.push(file);
  return file;
}

/** Both sides, in one process. */
function twoSides(): { here: LargeArrays; there: LargeArrays } {
  const [out, back] = [open(), open()];
  return { here: new LargeArrays(out, back), there: new LargeArrays(back, out) };
}

const bytes = (length: number, seed: number) => Uint8Array.from({ length }, (_, at) => (at * 7 + seed) & 0xff);

describe('large arrays', () => {
  test('arrive where they were in the message, and small ones never leave it', () => {
    const { here, there } = twoSides();
    const floats = Float32Array.from({ length: 50_000 }, (_, at) => at / 3);
    const window = new Uint8Array(bytes(300_000, 1).buffer, 5, 200_000);
    const input = { texts: ['a'], small: bytes(10, 0), images: [{ data: floats, width: 2 }, { data: window }] };
    const { message, arrays } = here.lift(input);
    expect(message).toEqual({ ...input, images: [{ data: null, width: 2 }, { data: null }] });
    const arrived = structuredClone(message);
    there.place(arrived, must(arrays, 'two are large'));
    expect(arrived).toEqual(input);
    expect(input.images[1]?.data).toBe(window);
  });

  test('keep their places until they are freed, whatever the order', () => {
    const { here, there } = twoSides();
    const sent = Array.from({ length: 8 }, (_, at) => ({ image: bytes(100_000 + at * 1_000, at) }));
    const lifted = sent.map((each) => here.lift(each));
    for (const at of [1, 4, 2, 6]) here.free(lifted[at]?.arrays ?? []);
    for (const at of [1, 4, 2, 6]) lifted[at] = here.lift(must(sent[at], 'one of eight'));
    for (const [at, { message, arrays = [] }] of lifted.entries()) {
      there.place(message, arrays);
      expect(message).toEqual(must(sent[at], 'one of eight'));
    }
  });

  test('stay in the message where there is no place for them', () => {
    const { here } = twoSides();
    const image = new Uint8Array(100 * 1024 * 1024);
    const places = [1, 2, 3].map(() => here.lift({ image }).arrays?.[0]?.at);
    expect(places).toEqual([0, image.length, undefined]);
    here.free([{ path: [], numbers: 'bytes', at: 0, bytes: image.length }]);
    expect(here.lift({ image }).arrays?.[0]?.at).toBe(0);
  });

  test('stay in the message where the memory of the machine is full', () => {
    const full = openSync('/dev/full', 'w');
    files.push(full);
    const message = { image: new Uint8Array(100_000) };
    expect(new LargeArrays(full, open()).lift(message)).toEqual({ message });
  });

  test('are refused where the other side names what is none', () => {
    const { there } = twoSides();
    const place = (path: string[], length: number, message: unknown = { image: null }) =>
      there.place(message, [{ path, numbers: 'bytes', at: 0, bytes: length }]);
    expect(() => place(['image'], 100)).toThrow('outside of its file');
    expect(() => place(['image'], 2 ** 40)).toThrow('longer than');
    expect(() => place(['constructor', 'prototype', 'image'], 0)).toThrow('no place');
    expect(() => place(['other'], 0)).toThrow('no place');
    expect(() => place([], 0)).toThrow('no place');
  });
});
