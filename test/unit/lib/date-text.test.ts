import { describe, expect, test } from 'bun:test';
import { isDateText } from '../../../src/lib/text/date-text.ts';

describe('dates as text', () => {
  const dates = [
    ...['2024-05-01', '2024-02-29', '0001-01-01', '2024-05-01T12:00:00Z', '2024-05-01t12:00:00z'],
    ...['2024-05-01T12:00:00.1234567890Z', '2024-05-01T12:00:00+02:00', '2024-12-31T23:59:60Z'],
  ];
  for (const text of dates) test(`${text} is one`, () => expect(isDateText(text)).toBe(true));

  const others = [
    ...['', '2024', '2024-5-1', '2024-13-01', '2024-00-10', '2024-02-30', '2023-02-29', '2024-05-00', 'tomorrow'],
    ...['2024-05-01T12:00:00', '2024-05-01T24:00:00Z', '2024-05-01T12:60:00Z', '2024-05-01T12:00Z', ' 2024-05-01'],
  ];
  for (const text of others) test(`${JSON.stringify(text)} is none`, () => expect(isDateText(text)).toBe(false));

  test('a very long text is none', () => expect(isDateText('2'.repeat(1_000_000))).toBe(false));
});
