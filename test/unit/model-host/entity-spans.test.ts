import { expect, test } from 'bun:test';
import { withoutConflicts } from '../../../src/model-host/backends/onnx/entity-spans.ts';
import { SeededRandom } from '../../support/fault/seeded-random.ts';

test("of spans that get in each other's way the surest stays, as a look at every pair finds it", () => {
  const seed = Date.now();
  const random = new SeededRandom(seed);
  for (let round = 0; round < 200; round += 1) {
    const found = Array.from({ length: random.between(0, 39) }, () => {
      const start = random.between(0, 29);
      return {
        label: random.between(0, 2),
        start,
        end: start + 1 + random.between(0, 7),
        score: random.between(0, 4) / 5,
      };
    });
    for (const flat of [true, false]) {
      const kept = withoutConflicts(found, flat);
      const inTheWay = (a: (typeof found)[number], b: (typeof found)[number]) => {
        const nested = (a.start <= b.start && b.end <= a.end) || (b.start <= a.start && a.end <= b.end);
        const same = a.start === b.start && a.end === b.end;
        return a.start < b.end && b.start < a.end && (flat || same || !nested);
      };
      const surest = found.toSorted((a, b) => b.score - a.score || a.start - b.start || a.end - b.end);
      const wanted: typeof found = [];
      for (const span of surest) if (!wanted.some((other) => inTheWay(span, other))) wanted.push(span);
      expect({ seed, kept: new Set(kept) }).toEqual({ seed, kept: new Set(wanted) });
    }
  }
});

test("tens of thousands of spans in each other's way are looked at in their neighbourhood", () => {
  let reads = 0;
  const found = Array.from({ length: 20_000 }, (_, at) => ({
    label: 0,
    start: at,
    get end() {
      reads += 1;
      return at + 4;
    },
    score: (at * 7_919) % 20_000,
  }));
  expect(withoutConflicts(found, false).length).toBeGreaterThan(4_000);
  expect(reads).toBeLessThan(20_000 * 100);
});
