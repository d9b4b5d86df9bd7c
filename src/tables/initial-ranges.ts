import { assert } from '../lib/assert.ts';

/** A contiguous interval of keys: from `startKey`, up to but not including `endKey`; '' and null are unbounded. */
export interface KeyInterval {
  startKey: string;
  endKey: string | null;
}

/** Keys mostly begin with one of these; cutting between them spreads such keys evenly. */
const firstCharacters = '0123456789abcdefghijklmnopqrstuvwxyz';

/** Cuts the key space into `count` intervals. Nothing is known of the keys yet, so the cuts are between first letters. */
export function initialIntervals(count: number): KeyInterval[] {
  assert(count >= 1 && count <= firstCharacters.length, 'a table begins with one range for each cut at most');
  const cuts = Array.from({ length: count - 1 }, (_, index) =>
    firstCharacters.charAt(Math.round(((index + 1) * firstCharacters.length) / count)),
  );
  return [undefined, ...cuts].map((cut, index) => ({ startKey: cut ?? '', endKey: cuts[index] ?? null }));
}
