import { expect, test } from 'bun:test';
import { freeBytes } from '../../../src/lib/free-bytes.ts';

test('bytes that have a buffer of their own are given back, and no others', async () => {
  const own = new Uint8Array(1_000);
  const part = new Uint8Array(1_000).subarray(1);
  const text = await Bun.zstdDecompress(Bun.zstdCompressSync(Buffer.alloc(100_000, 'a')));
  for (const bytes of [own, part, text]) freeBytes(bytes);
  expect([own.buffer.byteLength, part.byteLength, text.byteLength]).toEqual([0, 999, 0]);
});
