import { expect, test } from 'bun:test';
import { decodeRedo, encodeRedo } from '../../../src/storage/writer/redo-record.ts';

test('a redo record gives back its parts, each frame in a buffer of its own', () => {
  const parts = [
    { rangeId: 1, generation: 1, entryIndex: 7, frame: new Uint8Array([1, 2, 3]) },
    { rangeId: 90, generation: 4, entryIndex: 1, frame: new Uint8Array([]) },
    { rangeId: 91, generation: 1, entryIndex: 2, frame: new Uint8Array([255]) },
  ];
  const decoded = decodeRedo(encodeRedo(parts));
  expect(decoded).toEqual(parts);
  expect(decoded[0]?.frame.byteOffset).toBe(0);
});

test('a redo record of another version is refused', () => {
  const bytes = encodeRedo([]);
  bytes[0] = 2;
  const hint = 'start the release that wrote this directory, or a later one';
  expect(() => decodeRedo(bytes)).toThrow(expect.objectContaining({ problem: 'newer_format', hint }));
});
