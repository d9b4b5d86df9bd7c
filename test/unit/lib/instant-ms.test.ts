import { afterAll, expect, test } from 'bun:test';
import { TableSchema } from '../../../src/engine/table-schema.ts';
import { buildFrame, scanWrite, sectionEntries } from '../../../src/engine/write-frame.ts';
import { readFrame } from '../../../src/lib/document-frame.ts';
import { instantMs } from '../../../src/lib/instant-ms.ts';

const schema = await TableSchema.compile({});
afterAll(() => schema.close());

/** The TTL base of an inserted document; undefined where the insert is refused. */
async function baseOfInsert(value: string): Promise<number | undefined> {
  const body = new TextEncoder().encode(`{"inserts":{"k":{"at":${value}}}}`);
  const entries = sectionEntries(await scanWrite(body, 'batch'), 0);
  try {
    const frame = await buildFrame(body, entries, { timestampMs: 5, ttlField: 'at', keyBytesMax: 100 }, schema);
    return readFrame(frame).ttlBaseMs(0);
  } catch (error) {
    expect(error).toMatchObject({ code: 'validation_failed' });
    return undefined;
  }
}

const days = [
  '2026-01-01',
  '2024-02-29',
  '2023-02-29',
  '2026-04-31',
  '2026-13-01',
  '2026-00-10',
  '0001-01-01',
  '9999-12-31',
];
const times = ['00:00:00', '23:59:59', '24:00:00', '23:59:60', '12:60:00', '12:00:61', '12:00', '05:29:60', '22:59:60'];
const fractions = ['', '.5', '.9996', '.123456789', '.1234567890123', '.', ',5'];
const zones = ['Z', 'z', '', '+05:30', '-00:00', '-23:59', '+24:00', '+01:60', '+0530', '+05', ' Z', '\u221201:00'];
const texts = days.flatMap((day) => times.flatMap((time) => zones.map((zone) => `${day}T${time}${zone}`)));
const others = [
  '2026-01-01',
  '2026-01-01 00:00:00Z',
  '2026-01-01t00:00:00Z',
  '2026-01-01_00:00:00Z',
  '2026-01-01500:00:00Z',
];
const strings = [
  ...texts,
  ...fractions.flatMap((fraction) => [`2026-06-30T23:59:59${fraction}Z`, `2016-12-31T23:59:60${fraction}Z`]),
  ...others,
  ...[
    '1969-12-31T23:59:59.9996Z',
    '2016-12-31T23:59:60+01:00',
    '10000-01-01T00:00:00Z',
    '2026-01-01T00:00:00Zx',
    'x',
    '',
  ],
];
const numbers = ['0', '-1', '1', '5000000000', '1.7e18', '-0.0', '8.64e21', '8.65e21', '1e30', '-1e30', '1e308'];

test('a time means for a transform what it means for an insert, and what an insert refuses is none', async () => {
  for (const value of [...strings.map((text) => JSON.stringify(text)), ...numbers, 'null', 'true', '[]', '{}']) {
    const instant = instantMs(JSON.parse(value));
    // An insert takes what is older than 1970 for its first millisecond.
    const expected = instant === undefined ? undefined : Math.max(1, instant);
    expect([value, await baseOfInsert(value)]).toEqual([value, expected]);
  }
});
