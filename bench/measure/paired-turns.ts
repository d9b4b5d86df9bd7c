import type { Side } from './alternate.ts';
import { median } from './statistics.ts';

/** Measures of two sides: `peer` as it was, `ours` as the ratio says that it is beside that. */
export interface PairedCost {
  readonly ours: number;
  readonly peer: number;
}

/**
 * Short turns of several sides, A B C C B A and then C B A A B C, `rounds` times: what else the machine does lasts longer than a
 * round, and so falls on all of them. The result holds for each side, by round, the sum of its two turns, figure by figure.
 */
export async function mirroredTurns<const Name extends string>(
  sides: Readonly<Record<Name, Side<readonly number[]>>>,
  rounds: number,
): Promise<Record<Name, number[][]>> {
  if (rounds < 1) throw new RangeError('at least one round');
  const names = Object.keys(sides) as Name[];
  const sums = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[][]>;
  for (let round = 0; round < rounds; round += 1) {
    const there = round % 2 === 0 ? names : names.toReversed();
    const first = new Map<Name, readonly number[]>();
    for (const name of there) first.set(name, await sides[name]());
    for (const name of there.toReversed()) {
      const second = await sides[name]();
      sums[name].push((first.get(name) ?? []).map((value, at) => value + (second[at] ?? Number.NaN)));
    }
  }
  return sums;
}

/**
 * By the sums of rounds. The ratio is the median over the rounds, since a turn that
 * something else falls into says nothing of its side.
 */
export function pairedCost(ours: readonly number[], peer: readonly number[]): PairedCost {
  const usual = median(peer) / 2;
  return { ours: usual * median(ours.map((sum, round) => sum / (peer[round] ?? Number.NaN))), peer: usual };
}
