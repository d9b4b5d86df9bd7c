import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { FrameBuilder, readFrame, rowKind, rowOrdinalIsNew } from '../../../src/lib/document-frame.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const body = encoder.encode('{"a":1}');

describe('document frame', () => {
  test('reads back what was appended', () => {
    const builder = new FrameBuilder(1, 1);
    const put = builder.append(rowKind.put, 'naïve/😀', body);
    const del = builder.append(rowKind.delete, encoder.encode('gone'), new Uint8Array());
    builder.setOrdinal(put, 0xffff_ffff);
    builder.setSequence(put, Number.MAX_SAFE_INTEGER);
    builder.setTtlBaseMs(put, -1_500);
    builder.setFlags(put, rowOrdinalIsNew);
    const length = builder.byteLength;
    const frame = readFrame(builder.finish());
    expect(frame.bytes.byteLength).toBe(length);
    expect(frame.rowCount).toBe(2);
    expect([frame.kind(put), frame.kind(del)]).toEqual([rowKind.put, rowKind.delete]);
    expect([frame.key(put), frame.key(del)]).toEqual(['naïve/😀', 'gone']);
    expect(decoder.decode(frame.body(put))).toBe('{"a":1}');
    expect([frame.bodyBytes(put), frame.bodyBytes(del)]).toEqual([7, 0]);
    expect([frame.ordinal(put), frame.sequence(put), frame.ttlBaseMs(put), frame.flags(put)]).toEqual([
      0xffff_ffff,
      Number.MAX_SAFE_INTEGER,
      -1_500,
      rowOrdinalIsNew,
    ]);
    expect(frame.crc(put)).toBe(Bun.hash.crc32(body));
    expect([frame.ordinal(del), frame.sequence(del), frame.flags(del)]).toEqual([0, 0, 0]);
  });

  test('fields are set in place, in the very bytes', () => {
    const builder = new FrameBuilder();
    builder.append(rowKind.put, 'k', body);
    const frame = readFrame(builder.finish());
    frame.setOrdinal(0, 7);
    frame.setSequence(0, 2 ** 40 + 3);
    frame.setTtlBaseMs(0, 1_777_863_721_500);
    const again = readFrame(frame.bytes);
    expect([again.ordinal(0), again.sequence(0), again.ttlBaseMs(0)]).toEqual([7, 2 ** 40 + 3, 1_777_863_721_500]);
    expect(() => frame.setSequence(0, 2 ** 53)).toThrow();
    expect(() => frame.setOrdinal(1, 1)).toThrow();
  });

  test('a frame may be a view into a larger buffer', () => {
    const builder = new FrameBuilder();
    builder.append(rowKind.put, 'k', body);
    const bytes = builder.finish();
    const larger = new Uint8Array(bytes.byteLength + 20);
    larger.set(bytes, 11);
    const frame = readFrame(larger.subarray(11, 11 + bytes.byteLength));
    expect([frame.key(0), decoder.decode(frame.body(0))]).toEqual(['k', '{"a":1}']);
  });

  test('rows copied to another frame keep every field', () => {
    const row = fc.record({
      kind: fc.constantFrom(rowKind.put, rowKind.delete, rowKind.transform),
      key: fc.string({ unit: 'binary', maxLength: 20 }),
      body: fc.uint8Array({ maxLength: 100 }),
      ordinal: fc.nat(0xffff_ffff),
      sequence: fc.maxSafeNat(),
      ttlBaseMs: fc.maxSafeInteger(),
    });
    fc.assert(
      fc.property(fc.array(row, { maxLength: 40 }), (rows) => {
        const builder = new FrameBuilder(0, 0);
        for (const { kind, key, body, ordinal, sequence, ttlBaseMs } of rows) {
          const at = builder.append(kind, key, body);
          builder.setOrdinal(at, ordinal);
          builder.setSequence(at, sequence);
          builder.setTtlBaseMs(at, ttlBaseMs);
        }
        const frame = readFrame(builder.finish());
        const copier = new FrameBuilder();
        for (let at = 0; at < frame.rowCount; at += 1) copier.appendRow(frame, at);
        const copy = copier.finish();
        expect(copy).toEqual(frame.bytes);
        for (const [at, { key, sequence, ttlBaseMs }] of rows.entries()) {
          expect([frame.key(at), frame.sequence(at), frame.ttlBaseMs(at)]).toEqual([key, sequence, ttlBaseMs]);
        }
      }),
    );
  });

  test('is built by a builder that was cleared as by a new one', () => {
    const used = new FrameBuilder(1, 1);
    for (let row = 0; row < 3; row += 1) {
      used.append(rowKind.put, `key${row}`, body);
      used.setFlags(row, rowOrdinalIsNew);
      used.setOrdinal(row, 7);
      used.setTtlBaseMs(row, 8);
    }
    used.finish();
    used.clear();
    expect([used.rowCount, used.byteLength]).toEqual([0, new FrameBuilder().byteLength]);
    const built = [used, new FrameBuilder()].map((builder) => {
      builder.append(rowKind.delete, 'k', new Uint8Array(0));
      builder.append(rowKind.put, 'l', body);
      return builder.finish();
    });
    expect(built[0]).toEqual(built[1] as Uint8Array<ArrayBuffer>);
  });

  test('refuses bytes that are not a whole frame', () => {
    const builder = new FrameBuilder();
    builder.append(rowKind.put, 'k', body);
    const bytes = builder.finish();
    const changed = (at: number, value: number) => {
      const copy = bytes.slice();
      copy[at] = value;
      return copy;
    };
    expect(() => readFrame(bytes.subarray(0, 10))).toThrow('not a document frame');
    expect(() => readFrame(bytes.subarray(0, bytes.byteLength - 1))).toThrow('do not add up');
    expect(() => readFrame(changed(0, 0))).toThrow('not a document frame');
    expect(() => readFrame(changed(4, 2))).toThrow('unknown version');
    expect(() => readFrame(changed(8, 2))).toThrow('do not add up');
    expect(() => readFrame(changed(32, 9)).kind(0)).toThrow('unknown kind');
    expect(() => readFrame(changed(32 + 35, 1)).body(0)).toThrow('outside the frame');
    expect(() => readFrame(changed(32 + 27, 1)).key(0)).toThrow('outside the frame');
  });
});
