import { describe, expect, test } from 'bun:test';
import {
  type ArchivedDocument,
  documentEnd,
  documentHead,
  isTooLong,
} from '../../../src/backup/archive/archive-line.ts';
import { readLine } from '../../../src/backup/archive/read-line.ts';
import { declaredSize } from '../../../src/backup/archive/zstd-frame.ts';
import { BlockPacker, blockBytes } from '../../../src/backup/copy/block-packer.ts';
import { restoreSteps } from '../../../src/backup/restore/restore-state.ts';
import { isObjectName } from '../../../src/backup/stores/object-store.ts';
import { partBody, partForm } from '../../../src/lib/parts/part-body.ts';

const encoder = new TextEncoder();
const denseBody = (partId: number, values: number[]) =>
  partBody(partId, partForm.dense, new Uint8Array(new Float32Array(values).buffer));
const bytes = (text: string) => encoder.encode(text);

const textOf = (packer: BlockPacker) => {
  packer.finish();
  return Buffer.concat(packer.take().map(({ frame }) => Bun.zstdDecompressSync(frame)));
};

function lineOf(document: ArchivedDocument): Buffer {
  const packer = new BlockPacker();
  packer.addText(documentHead(document));
  packer.addJson(document.body);
  packer.add(documentEnd);
  return textOf(packer);
}

describe('a line of an archive', () => {
  const document = {
    ordinal: 7,
    key: 'a "quoted", key\u2028 with ,"document": in it',
    version: 1_800_000_000_000_123,
    ttlBaseMs: 5,
    writtenMs: 0,
    body: bytes('{"n":1.0,"document":{"a":1}}'),
    parts: [denseBody(3, [1, 2])],
  };

  test('comes back as it was written, the document byte for byte', () => {
    const line = lineOf(document);
    expect(JSON.parse(Buffer.from(line).toString())).toMatchObject({ id: 7, key: document.key, document: { n: 1 } });
    const read = readLine(line.subarray(0, -1), 3);
    if (read.kind !== 'document') throw new Error('not a document');
    const { body, parts, ...rest } = read.document;
    expect({ ...rest, body: Buffer.from(body).toString() }).toEqual({
      ordinal: 7,
      key: document.key,
      version: document.version,
      ttlBaseMs: 5,
      writtenMs: 0,
      body: '{"n":1.0,"document":{"a":1}}',
    });
    expect(parts.map((part) => Buffer.from(part))).toEqual(document.parts.map((part) => Buffer.from(part)));
  });

  test('is one line, whatever line breaks the document has between its tokens', () => {
    const line = lineOf({ ...document, body: bytes('{\n"n":\n1}') });
    expect(line.indexOf('\n')).toBe(line.byteLength - 1);
    expect(JSON.parse(line.toString()).document).toEqual({ n: 1 });
  });

  test('goes on in the next block where it is long', () => {
    const long = 'ä'.repeat(blockBytes);
    const packer = new BlockPacker();
    packer.addText('a');
    packer.addText(long);
    expect(packer.hasBlocks).toBe(true);
    expect(textOf(packer).toString() === `a${long}`).toBe(true);
  });

  test('has artifacts and vectors of hundreds of MiB, and no more', () => {
    const part = new Uint8Array(8 * 1_024 * 1_024);
    const parts = (count: number) => Array.from({ length: count }, () => part);
    expect(isTooLong({ body: document.body, parts: parts(47) })).toBe(false);
    expect(isTooLong({ body: document.body, parts: parts(48) })).toBe(true);
  });

  test('that no backup has is refused', () => {
    const lastPartId = 3;
    const part = Buffer.from(denseBody(3, [1])).toString('base64');
    const cut = Buffer.from(denseBody(3, [1]).subarray(0, -1)).toString('base64');
    const lines = [
      '',
      '{}',
      '[]',
      'null',
      '{"id":0,"deleted":true}',
      '{"id":4294967296,"deleted":true}',
      '{"id":1,"key":"","version":1,"document":{}}',
      '{"id":1,"key":"a","version":-1,"document":{}}',
      '{"id":1,"key":"a","version":1,"document":[]}',
      '{"id":1,"key":"a","version":1,"document":{"a":}}',
      '{"id":1,"key":"a","version":1,"document":{}}}',
      `{"id":1,"key":"a","version":1,"document":${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`,
      '{"id":1,"key":"a","version":1,"parts":{"3":"AAAA"},"document":{}}',
      `{"id":1,"key":"a","version":1,"parts":{"3":"${part.slice(0, 8)}*${part.slice(8)}"},"document":{}}`,
      `{"id":1,"key":"a","version":1,"parts":{"4":"${part}"},"document":{}}`,
      `{"id":1,"key":"a","version":1,"parts":{"3":7},"document":{}}`,
      `{"id":1,"key":"a","version":1,"parts":{"3":"${cut}"},"document":{}}`,
      '{"from":1,"to":2,"live":["x"]}',
    ];
    for (const line of lines) {
      expect(() => readLine(Buffer.from(line), lastPartId)).toThrow(
        expect.objectContaining({ code: 'backup_corrupted' }),
      );
    }
    expect(() => readLine(Buffer.of(0x7b, 0xff, 0x7d), lastPartId)).toThrow();
  });
});

describe('the declared size of a zstd frame', () => {
  test('is that of one whole frame', () => {
    for (const size of [1, 200, 300, 70_000, 5_000_000]) {
      expect(declaredSize(Bun.zstdCompressSync(Buffer.alloc(size, 'ab'), { level: 3 }))).toBe(size);
    }
  });

  test('is not there for what is no frame, for a part of one, and where another follows', () => {
    const frame = Bun.zstdCompressSync(Buffer.alloc(70_000, 'ab'));
    expect(declaredSize(new Uint8Array(0))).toBeUndefined();
    expect(declaredSize(bytes('no frame at all'))).toBeUndefined();
    expect(declaredSize(frame.subarray(0, -1))).toBeUndefined();
    expect(declaredSize(Buffer.concat([frame, frame]))).toBeUndefined();
    expect(declaredSize(Buffer.concat([frame, Buffer.from([0])]))).toBeUndefined();
  });

  test('is believed only as far as it is small: a frame may say anything', () => {
    const bomb = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0]);
    expect(declaredSize(bomb)).toBe(2 ** 40);
  });
});

test('names of objects stay below their location', () => {
  for (const name of ['b-cluster-metadata.json', 'b/3-4/table-0.json', '_x']) expect(isObjectName(name)).toBe(true);
  const wrong = ['', '/a', 'a/', 'a//b', '../x', 'a/../b', '.x', 'a/.b', 'a\\b', 'a\0', 'a b', 'ä', 'x'.repeat(600)];
  for (const name of wrong) expect(isObjectName(name)).toBe(false);
});

test('a restore that has ended stays as it ended, whatever comes', () => {
  for (const phase of ['succeeded', 'failed', 'cancelled'] as const) {
    expect(new Set(Object.values(restoreSteps[phase]))).toEqual(new Set(['ignore']));
  }
  expect(restoreSteps.queued.cancel).toBe('cancelled');
  expect(restoreSteps.running).toMatchObject({ cancel: 'stay', boundary: 'cancelled', 'all published': 'succeeded' });
});
