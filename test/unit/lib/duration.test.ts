import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { DurationError, formatDuration, parseDuration } from '../../../src/lib/duration.ts';

describe('durations', () => {
  const readings: [text: string, ms: number][] = [
    ['30s', 30_000],
    ['5m', 300_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['168h', 604_800_000],
    ['250ms', 250],
    ['1h30m', 5_400_000],
    ['1m1ms', 60_001],
    ['0s', 0],
    ['30m30m', 3_600_000],
  ];
  for (const [text, ms] of readings) {
    test(`${text} is ${ms} ms`, () => expect(parseDuration(text)).toBe(ms));
  }

  for (const text of [
    '',
    ' ',
    '5',
    's',
    '-5s',
    '1.5h',
    '5 m',
    '5m ',
    '1w',
    '1y',
    '5S',
    '5s3',
    'PT5M',
    '1ns',
    '٣s',
    `${'9'.repeat(20)}s`,
  ]) {
    test(`${JSON.stringify(text)} is refused with a sentence`, () => {
      expect(() => parseDuration(text)).toThrow(DurationError);
      expect(() => parseDuration(text)).toThrow(/such as 30s|too long/);
    });
  }

  test('what milliseconds cannot count exactly is refused', () => {
    expect(() => parseDuration('9007199254740993ms')).toThrow(DurationError);
    expect(() => parseDuration('1000000000000d')).toThrow(/too long/);
  });

  test('the longest refusal is short', () => {
    expect(() => parseDuration('x'.repeat(100_000))).toThrow(/^.{1,200}$/);
  });

  test('formatting is shortest and read back as the same time', () => {
    expect(formatDuration(0)).toBe('0s');
    expect(formatDuration(5_400_000)).toBe('1h30m');
    expect(formatDuration(604_800_000)).toBe('7d');
    expect(formatDuration(1_500)).toBe('1s500ms');
    fc.assert(fc.property(fc.maxSafeNat(), (ms) => expect(parseDuration(formatDuration(ms))).toBe(ms)));
    expect(() => formatDuration(-1)).toThrow(RangeError);
    expect(() => formatDuration(0.5)).toThrow(RangeError);
  });
});
