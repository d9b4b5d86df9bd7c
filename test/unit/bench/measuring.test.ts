import { describe, expect, test } from 'bun:test';
import { alternate } from '../../../bench/measure/alternate.ts';
import { compare } from '../../../bench/measure/comparison.ts';
import { mirroredTurns, pairedCost } from '../../../bench/measure/paired-turns.ts';
import { median, percentile } from '../../../bench/measure/statistics.ts';
import { readBenchOptions } from '../../../bench/options.ts';
import { cpuUsOf } from '../../../bench/processes/process-cpu.ts';
import { findRegressions } from '../../../bench/report/regressions.ts';
import { renderComparison } from '../../../bench/report/render-comparison.ts';
import { renderStanding, type StandingLine } from '../../../bench/report/standing.ts';

describe('statistics', () => {
  test('the percentile is the nearest rank, whatever the order', () => {
    const values = [5, 1, 4, 2, 3];
    expect(percentile(values, 0.5)).toBe(3);
    expect(percentile(values, 0.99)).toBe(5);
    expect(percentile(values, 0)).toBe(1);
    expect(values).toEqual([5, 1, 4, 2, 3]);
  });

  test('the median of an even number of values lies between the middle two', () => {
    expect(median([10, 2, 8, 4])).toBe(6);
    expect(() => median([])).toThrow('no values');
  });
});

describe('alternate', () => {
  test('runs the sides in turn and keeps the order of the pairs', async () => {
    const order: string[] = [];
    let turn = 0;
    const side = (name: string) => async () => {
      order.push(name);
      turn += 1;
      return turn;
    };
    const result = await alternate({ ours: side('A'), peer: side('B') }, 3, async () => void order.push('-'));
    expect(order.join('')).toBe('-A-B-A-B-A-B');
    expect(result).toEqual({ ours: [1, 3, 5], peer: [2, 4, 6] });
  });
});

describe('short turns of several sides', () => {
  /** Sides that take so much longer in each round, and note their turns. */
  function sides(slowdown: readonly number[]) {
    const order: string[] = [];
    const side = (name: string, us: number) => () => {
      order.push(name);
      return Promise.resolve([us * (slowdown[Math.floor((order.length - 1) / 4)] ?? 1)]);
    };
    return { order, side };
  }

  test('begin with another side each round, and come back to it', async () => {
    const { order, side } = sides([]);
    await mirroredTurns({ ours: side('A', 1), peer: side('B', 1) }, 3);
    expect(order.splice(0).join('')).toBe('ABBABAABABBA');
    await mirroredTurns({ a: side('A', 1), b: side('B', 1), c: side('C', 1) }, 2);
    expect(order.join('')).toBe('ABCCBACBAABC');
  });

  test('are added up by round, figure by figure', async () => {
    let turn = 0;
    const counting = async () => {
      turn += 1;
      return [turn, 10 * turn];
    };
    expect(await mirroredTurns({ a: counting, b: async () => [0, turn] }, 2)).toEqual({
      // 1 and 2, and then 3 and 4, next to each other.
      a: [
        [3, 30],
        [7, 70],
      ],
      b: [
        [0, 2],
        [0, 6],
      ],
    });
  });

  test('are compared within their round, so that a slow machine changes neither side', async () => {
    const { side } = sides([1, 3, 1, 9, 1]);
    const sums = await mirroredTurns({ ours: side('A', 11), peer: side('B', 10) }, 5);
    const { ours: cost, peer: beside } = pairedCost(sums.ours.flat(), sums.peer.flat());
    expect([cost, beside]).toEqual([expect.closeTo(11), expect.closeTo(10)]);
  });
});

describe('the CPU time of a process', () => {
  test('is that of all its threads, to less than a tick of the kernel', () => {
    const counted = () => {
      const { user, system } = process.cpuUsage();
      return user + system;
    };
    // Two counts of Bun around each reading bound what the clock may say, however slow the readings are.
    const read = () => ({ before: counted(), clock: cpuUsOf(process.pid), after: counted() });
    for (let round = 0; round < 5; round += 1) {
      const first = read();
      while (counted() - first.after < 3_000);
      const last = read();
      const used = last.clock - first.clock;
      expect(used).toBeGreaterThan(last.before - first.after - 500);
      expect(used).toBeLessThan(last.after - first.before + 500);
    }
  });

  test('is not there for a process that is not', async () => {
    const child = Bun.spawn(['true']);
    await child.exited;
    expect(() => cpuUsOf(child.pid)).toThrow('cannot be read');
  });
});

describe('compare', () => {
  test('takes the ratio inside each pair, not of the medians', () => {
    const result = compare({
      name: 'x',
      unit: 'us',
      ours: [10, 100, 30],
      peer: { name: 'peer', values: [10, 50, 10] },
      aim: { kind: 'at_most', value: 2 },
    });
    expect(result.ratio).toEqual({ median: 2, min: 1, max: 3, values: [1, 2, 3] });
    expect(result.met).toBe(true);
    expect(result.ratioOfBest).toBe(1);
  });

  test('judges ours alone when there is no peer', () => {
    const aim = { kind: 'at_least', value: 100 } as const;
    expect(compare({ name: 'x', unit: 'docs/s', ours: [99, 98, 200], aim }).met).toBe(false);
    expect(compare({ name: 'x', unit: 'docs/s', ours: [101], aim }).met).toBe(true);
    expect(compare({ name: 'x', unit: 'docs/s', ours: [101] })).not.toHaveProperty('met');
  });

  test('refuses sides of different length', () => {
    expect(() => compare({ name: 'x', unit: 'us', ours: [1], peer: { name: 'p', values: [1, 2] } })).toThrow('differ');
  });

  test('is rendered with figures, ratio, aim and verdict', () => {
    const comparison = compare({
      name: 'p50',
      unit: 'us',
      ours: [3_000],
      peer: { name: 'floor', values: [1_500] },
      aim: { kind: 'at_most', value: 1.5 },
      notes: { clients: 1 },
    });
    expect(renderComparison('durable', comparison)).toBe(
      [
        'durable/p50',
        '  ours 3,000 us (3,000 to 3,000)',
        '  floor 1,500 us (1,500 to 1,500)',
        '  ratio 2 (2 to 2), of the best turns 2',
        '  aim <= 1.5x: NOT MET',
        '  clients 1',
      ].join('\n'),
    );
  });
});

describe('findRegressions', () => {
  const line = (ratio: number, kind: 'at_most' | 'at_least') => ({
    case: 'c',
    name: kind,
    ratio: { median: ratio, min: ratio, max: ratio, values: [ratio] },
    aim: { kind, value: 1 },
  });

  test('a ratio fails when it is more than a quarter worse, in the direction of its aim', () => {
    expect(findRegressions([line(1, 'at_most')], [line(1.26, 'at_most')])).toHaveLength(1);
    expect(findRegressions([line(1, 'at_most')], [line(1.24, 'at_most')])).toEqual([]);
    expect(findRegressions([line(1, 'at_least')], [line(0.79, 'at_least')])).toHaveLength(1);
    expect(findRegressions([line(1, 'at_least')], [line(5, 'at_least')])).toEqual([]);
  });

  test('what the baseline does not know is not judged', () => {
    expect(findRegressions([], [line(9, 'at_most')])).toEqual([]);
  });
});

describe('where the aims stand', () => {
  const line = (given: Partial<StandingLine>): StandingLine => ({
    ...compare({ name: 'latency', unit: 'us', ours: [7], aim: { kind: 'at_most', value: 5 }, notes: {} }),
    case: 'late',
    tier: 'full',
    at: '2026-01-02T00:00:00Z',
    ...given,
  });
  const better = compare({ name: 'latency', unit: 'us', ours: [4], aim: { kind: 'at_most', value: 5 }, notes: {} });
  const rowsOf = (lines: StandingLine[]) => renderStanding(lines, ['early', 'late']).trimEnd().split('\n').slice(2);

  test('the newest run of a comparison counts, whatever the order of the files', () => {
    const newer = line({ ...better, at: '2026-01-03T00:00:00Z' });
    const row = '| `late/latency` | 4 us (4 to 4) | <= 5 us | met | 2026-01-03 |';
    expect(rowsOf([newer, line({})])).toEqual([row]);
    expect(rowsOf([line({}), newer])).toEqual([row]);
  });

  test('cases have their order, tiers their own rows, and smoke runs, lost cases and what has no aim have none', () => {
    const { aim: _, ...aimless } = line({ name: 'other' });
    const lines = [
      line({}),
      line({ tier: 'scale' }),
      line({ case: 'early' }),
      line({ tier: 'smoke', at: '2027-01-01T00:00:00Z' }),
      line({ case: 'lost' }),
      aimless,
    ];
    expect(rowsOf(lines).map((row) => row.split(' | ')[0])).toEqual([
      '| `early/latency`',
      '| `late/latency`',
      '| `late/latency, scale`',
    ]);
  });
});

describe('the command line of the bench', () => {
  test('reads cases and options', () => {
    expect(
      readBenchOptions(['ingest', '--tier', 'full', '--pairs', '7', '--documents', '9'], ['ingest']),
    ).toMatchObject({
      cases: ['ingest'],
      tier: 'full',
      pairs: 7,
      documents: 9,
      seed: 42,
      pin: true,
    });
  });

  test('says what is wrong', () => {
    expect(() => readBenchOptions(['--tier', 'big'], [])).toThrow('unknown tier "big": use smoke, full, scale');
    expect(() => readBenchOptions(['nothing'], ['ingest'])).toThrow('unknown case "nothing": use ingest');
    expect(() => readBenchOptions(['--pairs', '0'], [])).toThrow('at least 1');
  });
});
