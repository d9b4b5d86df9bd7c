import type { CodeRange } from './grammar-writer.ts';

const codeMax = 0x10ffff;

/** Sorted, with neighbours joined. */
export function normalised(ranges: readonly CodeRange[]): CodeRange[] {
  const joined: [number, number][] = [];
  for (const [low, high] of ranges.toSorted((left, right) => left[0] - right[0])) {
    const last = joined.at(-1);
    if (last !== undefined && low <= last[1] + 1) last[1] = Math.max(last[1], high);
    else joined.push([low, high]);
  }
  return joined;
}

/** All code points that are in none of the ranges. */
export function complement(ranges: readonly CodeRange[]): CodeRange[] {
  const rest: CodeRange[] = [];
  let next = 0;
  for (const [low, high] of normalised(ranges)) {
    if (low > next) rest.push([next, low - 1]);
    next = high + 1;
  }
  if (next <= codeMax) rest.push([next, codeMax]);
  return rest;
}

export function without(ranges: readonly CodeRange[], removed: readonly CodeRange[]): CodeRange[] {
  return complement([...complement(ranges), ...removed]);
}

export function contains(ranges: readonly CodeRange[], code: number): boolean {
  return ranges.some(([low, high]) => code >= low && code <= high);
}
