import { describe, expect, test } from 'bun:test';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { readGgufHeader } from '../../../src/models/headers/gguf-header.ts';
import { readOnnxHeader } from '../../../src/models/headers/onnx-header.ts';
import { ModelFileError } from '../../../src/models/model-file-error.ts';
import { type Field, GgufBytes, message } from '../../support/files/model-bytes.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const fixtures = Bun.fileURLToPath(new URL('../../fixtures/', import.meta.url));
const chain = `${fixtures}models/generators/chain/model.gguf`;
const embedder = `${fixtures}models/embedders/tiny-bert/onnx/model.onnx`;
const seed = 20_261_121;

function refusal(read: (path: string) => unknown, bytes: Uint8Array): string {
  using directory = new TemporaryDirectory();
  const path = join(directory.path, 'model');
  writeFileSync(path, bytes);
  try {
    read(path);
  } catch (error) {
    if (error instanceof ModelFileError) return error.message;
    throw error;
  }
  return 'not refused';
}

/** Every damaged copy is read or refused, and refused by us. */
function survivesDamage(original: Uint8Array, headerBytes: number, read: (path: string) => unknown): void {
  const damage = fc.record({
    at: fc.nat(headerBytes - 1),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 9 }),
    length: fc.option(fc.nat(original.byteLength), { freq: 4 }),
  });
  fc.assert(
    fc.property(fc.array(damage, { minLength: 1, maxLength: 3 }), (all) => {
      let copy = original.slice();
      for (const { at, bytes, length } of all) {
        copy.set(bytes.subarray(0, Math.max(0, copy.byteLength - at)), Math.min(at, copy.byteLength));
        if (length !== null) copy = copy.slice(0, length);
      }
      refusal(read, copy);
    }),
    { seed, numRuns: 300 },
  );
}

describe('GGUF headers', () => {
  test('a whole file is described without its weights', () => {
    const header = readGgufHeader(chain);
    expect(header.values.get('general.architecture')).toBe('llama');
    expect(header.values.get('llama.context_length')).toBe(4096);
    expect(header.values.get('tokenizer.chat_template')).toContain("message['role']");
    expect(header.arrays.get('tokenizer.ggml.tokens')).toBe(313);
    expect([header.tensors, header.parameters]).toEqual([12, 241_949]);
    expect([...header.typeBytes.values()].reduce((sum, bytes) => sum + bytes, 0)).toBe(header.weightBytes);
  });

  const f32 = 0;
  const hostile: readonly (readonly [what: string, bytes: Uint8Array, reason: RegExp])[] = [
    ['another magic', new TextEncoder().encode('<!DOCTYPE html><html></html>'), /is not a GGUF file/],
    ['an empty file', new Uint8Array(), /is not a GGUF file/],
    ['version 1', new GgufBytes(1).file(), /GGUF version 1/],
    ['the other byte order', new GgufBytes(0x03000000).file(), /little-endian/],
    ['2^63 tensors', new GgufBytes(3, 1n << 63n).file(), /claims \d+ tensors/],
    ['more tensors than bytes', new GgufBytes(3, 1_000).file(), /more than it has bytes for/],
    ['2^63 entries', new GgufBytes(3, 0, 1n << 63n).file(), /claims \d+ metadata entries/],
    [
      'a key past the end',
      new GgufBytes(3, 0, 1)
        .u64(1n << 62n)
        .u64(0)
        .file(),
      /a key of/,
    ],
    [
      'a text past the end',
      new GgufBytes(3, 0, 1)
        .string('k')
        .u32(8)
        .u64(1n << 62n)
        .file(),
      /inside "k"/,
    ],
    [
      '2^63 items',
      new GgufBytes(3, 0, 1)
        .string('k')
        .u32(9)
        .u32(8)
        .u64(1n << 63n)
        .file(),
      /items of "k"/,
    ],
    ['nested arrays', new GgufBytes(3, 0, 1).string('k').u32(9).u32(9).u64(1).u64(0).file(), /nested type 9/],
    ['an unknown type', new GgufBytes(3, 0, 1).string('k').u32(77).u64(0).file(), /unknown or nested type 77/],
    ['a key twice', new GgufBytes(3, 0, 2).string('k').u32(4).u32(1).string('k').u32(4).u32(2).file(), /"k" twice/],
    ['an alignment of 3', new GgufBytes(3, 0, 1).string('general.alignment').u32(4).u32(3).file(), /alignment 3/],
    ['five dimensions', new GgufBytes(3, 1).tensor('t', [1, 1, 1, 1, 1], f32, 0).file(64), /5 dimensions/],
    ['a product over 2^63', new GgufBytes(3, 1).tensor('t', [2 ** 40, 2 ** 40], f32, 0).file(64), /impossible shape/],
    ['no elements', new GgufBytes(3, 1).tensor('t', [0], f32, 0).file(64), /impossible shape/],
    ['an unknown tensor type', new GgufBytes(3, 1).tensor('t', [8], 99, 0).file(64), /unknown type 99/],
    ['half a block', new GgufBytes(3, 1).tensor('t', [16], 8, 0).file(64), /do not fill blocks of 32/],
    ['weights past the end', new GgufBytes(3, 1).tensor('t', [17], f32, 0).file(64), /up to byte 68 of 64/],
    ['an offset past the end', new GgufBytes(3, 1).tensor('t', [8], f32, 1n << 40n).file(64), /of 64 bytes of weights/],
    ['an odd offset', new GgufBytes(3, 1).tensor('t', [8], f32, 4).file(64), /not aligned/],
    [
      'overlapping tensors',
      new GgufBytes(3, 2).tensor('a', [16], f32, 0).tensor('b', [8], f32, 32).file(64),
      /"a" and "b" in the same place/,
    ],
    ['a name twice', new GgufBytes(3, 2).tensor('a', [8], f32, 0).tensor('a', [8], f32, 32).file(64), /"a" twice/],
    ['a part of a split model', new GgufBytes(3, 0, 1).string('split.count').u32(4).u32(3).file(), /split model/],
  ];
  test.each(hostile)('%s is refused', (_, bytes, reason) => {
    expect(refusal(readGgufHeader, bytes)).toMatch(reason);
  });

  test('scores for other than all tokens are refused', () => {
    const bytes = new GgufBytes(3, 0, 2).string('tokenizer.ggml.tokens').u32(9).u32(8).u64(2).string('a').string('b');
    bytes.string('tokenizer.ggml.token_type').u32(9).u32(5).u64(1).u32(1);
    expect(refusal(readGgufHeader, bytes.file())).toMatch(/1 items .* for 2 tokens/);
  });

  test('random damage is read or refused', () => {
    survivesDamage(new Uint8Array(readFileSync(chain)), 8_192, readGgufHeader);
  });
});

const ir: readonly [number, number] = [1, 9];
const name = (text: string): readonly [number, string] => [1, text];
const model = (...graph: Field[]) => message(ir, [7, message(...graph)]);
const node = (operator: string, inputs: readonly string[], outputs: readonly string[]) =>
  message(...inputs.map((each) => [1, each] as const), ...outputs.map((each) => [2, each] as const), [4, operator]);
const tensor = (shape: readonly (number | bigint)[], raw: number, ...more: Field[]) =>
  message(...shape.map((size) => [1, size] as const), [2, 1], [8, 'w'], [9, new Uint8Array(raw)], ...more);
const external = (location: string, offset = '0') =>
  message(
    [1, 4],
    [2, 1],
    [8, 'w'],
    [13, message([1, 'location'], [2, location])],
    [13, message([1, 'offset'], [2, offset])],
    [14, 1],
  );

describe('ONNX headers', () => {
  test('a whole file is described without its weights', () => {
    const header = readOnnxHeader(embedder);
    expect(header.inputs.map((input) => input.name)).toEqual(['input_ids', 'attention_mask', 'token_type_ids']);
    expect(header.outputs).toEqual([
      { name: 'last_hidden_state', kind: 'tensor', elementType: 1, shape: ['batch', 'sequence', 32] },
    ]);
    expect(header.operators.get('MatMul')).toBe(8);
    expect(header.opsets).toEqual(new Map([['', 17]]));
  });

  test('classes and shapes of a predictor are read', () => {
    const header = readOnnxHeader(`${fixtures}predictors/forest/model.onnx`);
    expect(header.classLabels).toEqual(['0', '1']);
    expect(header.inputs[0]?.shape.at(-1)).toBe(2);
    expect(readOnnxHeader(`${fixtures}predictors/forest-zipmap/model.onnx`).outputs[1]?.kind).toBe('other');
  });

  const hostile: readonly (readonly [what: string, bytes: Uint8Array, reason: RegExp])[] = [
    ['a page of a proxy', new TextEncoder().encode('<html>blocked</html>'), /model/],
    ['an empty file', new Uint8Array(), /is not an ONNX model/],
    ['a field past its message', Uint8Array.from([0x3a, 0x7f, 0]), /runs past its end/],
    ['a length of 2^63', Uint8Array.from([0x3a, ...Array(9).fill(0xff), 1]), /runs past its end/],
    ['a varint without end', new Uint8Array(32).fill(0xff), /not a protocol buffer/],
    ['a later IR version', message([1, 99], [7, message()]), /IR version/],
    ['operators of its own', message(ir, [7, message()], [8, message([1, 'evil.ops'], [2, 1])]), /evil\.ops/],
    ['functions of its own', message(ir, [7, message()], [25, message()]), /functions of its own/],
    ['a tensor of 2^62', model([5, tensor([2n ** 62n], 4)]), /impossible shape/],
    ['a negative size', model([5, tensor([-1, -4], 16)]), /impossible shape/],
    ['a shape larger than its bytes', model([5, tensor([8], 4)]), /another number of elements/],
    ['an unknown element type', model([5, message([2, 200], [8, 'w'])]), /unknown type 200/],
    ['a cycle', model([1, node('Add', ['b', 'b'], ['a'])], [1, node('Neg', ['a'], ['b'])]), /form a cycle/],
    ['a node that reads itself', model([1, node('Neg', ['a'], ['a'])]), /form a cycle/],
    ['a value made twice', model([1, node('Now', [], ['a'])], [1, node('Now', [], ['a'])]), /"a" twice/],
    ['an output that nobody makes', model([12, message(name('y'))]), /"y" that no node makes/],
    ['weights of another directory', model([5, external('../../etc/passwd')]), /outside its directory/],
    ['weights at an absolute path', model([5, external('/etc/passwd')]), /outside its directory/],
    ['weights in a missing file', model([5, external('weights.bin')]), /not beside it/],
    ['weights at a negative offset', model([5, external('weights.bin', '-8')]), /offset "-8"/],
  ];
  test.each(hostile)('%s is refused', (_, bytes, reason) => {
    expect(refusal(readOnnxHeader, bytes)).toMatch(reason);
  });

  test('graphs inside graphs end', () => {
    let graph = message();
    for (let depth = 0; depth < 40; depth += 1) graph = message([1, message([4, 'If'], [5, message([6, graph])])]);
    expect(refusal(readOnnxHeader, message(ir, [7, graph]))).toMatch(/nests graphs deeper/);
  });

  test('external weights must be in a file of the directory, whole, and not behind a link', () => {
    using directory = new TemporaryDirectory();
    const path = join(directory.path, 'model.onnx');
    writeFileSync(path, model([5, external('weights.bin')]));
    writeFileSync(join(directory.path, 'weights.bin'), new Uint8Array(15));
    expect(() => readOnnxHeader(path)).toThrow('holds 15 bytes');
    writeFileSync(join(directory.path, 'weights.bin'), new Uint8Array(16));
    expect(readOnnxHeader(path).externalFiles).toEqual(['weights.bin']);
    writeFileSync(path, model([5, external('link.bin')]));
    symlinkSync('/dev/zero', join(directory.path, 'link.bin'));
    expect(() => readOnnxHeader(path)).toThrow('not beside it');
  });

  test('random damage is read or refused', () => {
    for (const path of [embedder, `${fixtures}predictors/forest/model.onnx`]) {
      const bytes = new Uint8Array(readFileSync(path));
      survivesDamage(bytes, bytes.byteLength, readOnnxHeader);
    }
  });
});

describe('trees', () => {
  interface Tree {
    ids?: number[];
    features?: number[];
    whenTrue: number[];
    whenFalse: number[];
    modes?: string[];
  }
  const leaf = 'LEAF';
  const branch = 'BRANCH_LEQ';
  const trees = ({
    ids = [0, 1, 2],
    features = [0, 0, 0],
    whenTrue,
    whenFalse,
    modes = [branch, leaf, leaf],
  }: Tree) => {
    const numbers = (key: string, values: readonly number[]) =>
      message(name(key), ...values.map((value) => [8, value] as const));
    const attributes = [
      numbers('nodes_treeids', [0, 0, 0]),
      numbers('nodes_nodeids', ids),
      numbers('nodes_featureids', features),
      numbers('nodes_truenodeids', whenTrue),
      numbers('nodes_falsenodeids', whenFalse),
      message(name('nodes_modes'), ...modes.map((mode) => [9, mode] as const)),
    ];
    const ensemble = message(
      [1, 'x'],
      [2, 'y'],
      [4, 'TreeEnsembleRegressor'],
      [7, 'ai.onnx.ml'],
      ...attributes.map((each) => [5, each] as const),
    );
    const two = message([1, message([1, 2])]);
    const input = message(name('x'), [2, message([1, message([1, 1], [2, two])])]);
    return refusal(readOnnxHeader, model([11, input], [1, ensemble]));
  };

  test('a whole tree is taken', () => {
    expect(trees({ whenTrue: [1, 0, 0], whenFalse: [2, 0, 0] })).toBe('not refused');
  });

  test('what would lead an evaluation outside the tree is refused', () => {
    expect(trees({ whenTrue: [9, 0, 0], whenFalse: [2, 0, 0] })).toMatch(/node 9, which does not exist/);
    expect(trees({ whenTrue: [1, 0, 0], whenFalse: [1, 0, 0] })).toMatch(/below two branches/);
    expect(trees({ whenTrue: [0, 0, 0], whenFalse: [2, 0, 0] })).toMatch(/cycle|two roots/);
    expect(trees({ whenTrue: [1, 0, 0], whenFalse: [2, 0, 0], features: [2, 0, 0] })).toMatch(/feature 2 of 2/);
    expect(trees({ whenTrue: [1, 0, 0], whenFalse: [2, 0, 0], features: [-1, 0, 0] })).toMatch(/feature -1 of 2/);
    expect(trees({ whenTrue: [1, 0], whenFalse: [2, 0, 0] })).toMatch(/2 nodes_truenodeids for 3 nodes/);
    expect(trees({ whenTrue: [1, 0, 0], whenFalse: [2, 0, 0], ids: [0, 1, 1] })).toMatch(/twice/);
  });
});
