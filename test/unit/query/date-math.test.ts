import { describe, expect, test } from 'bun:test';
import { DateMathError, readDateMath } from '../../../src/query/nodes/date-math.ts';

// A Thursday, and a leap day.
const nowMs = Date.parse('2024-02-29T13:45:30.250Z');

describe('dates in requests', () => {
  const readable: [text: string, moment: string][] = [
    ['2024-02-29', '2024-02-29'],
    ['2024-02-29T10:00:00+02:00', '2024-02-29T10:00:00+02:00'],
    ['2024-02-29T10:00:00.123456789Z', '2024-02-29T10:00:00.123456789Z'],
    ['now', '2024-02-29T13:45:30.250Z'],
    ['now-7d', '2024-02-22T13:45:30.250Z'],
    ['now+1d', '2024-03-01T13:45:30.250Z'],
    ['now-1y', '2023-02-28T13:45:30.250Z'],
    ['now+12M', '2025-02-28T13:45:30.250Z'],
    ['now-13M', '2023-01-29T13:45:30.250Z'],
    ['now-2h-45m-30s', '2024-02-29T11:00:00.250Z'],
    ['now/m', '2024-02-29T13:45:00.000Z'],
    ['now/H', '2024-02-29T13:00:00.000Z'],
    ['now/d', '2024-02-29T00:00:00.000Z'],
    ['now/w', '2024-02-26T00:00:00.000Z'],
    ['now-1M/M', '2024-01-01T00:00:00.000Z'],
    ['now/y+1w', '2024-01-08T00:00:00.000Z'],
    ['2024-01-31||+1M', '2024-02-29T00:00:00.000Z'],
    ['2024-03-03T12:00:00Z||/w', '2024-02-26T00:00:00.000Z'],
    ['2024-02-29t10:00:00z', '2024-02-29t10:00:00z'],
    ['2024-02-29 10:00:00z||/d', '2024-02-29T00:00:00.000Z'],
    ['0079-08-24T13:00:00Z||/y', '0079-01-01T00:00:00.000Z'],
  ];
  for (const [text, moment] of readable) {
    test(`${text} is ${moment}`, () => expect(readDateMath(text, nowMs)).toBe(moment));
  }

  const unreadable = ['', 'today', 'now-', 'now-7', 'now7d', 'now-7x', 'now-1d junk', '2024-02-30', '2024-02-29 10:00'];
  for (const text of [...unreadable, '2024-13-01', '2024', '2024-02-29||7d', 'x||+1d', 'now+999999y']) {
    test(`${JSON.stringify(text)} is refused`, () => expect(() => readDateMath(text, nowMs)).toThrow(DateMathError));
  }
});
