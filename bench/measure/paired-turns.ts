import { median } from './statistics.ts';

/** Measures of two sides: `peer` as it was, `ours` as the ratio says that it is beside that. */
export interface PairedCost {
  readonly ours: number;
  readonly peer: number;
}

/**
 * Short turns of two sides, A B B A, `rounds` times: what else the machine does lasts longer than a round, and so falls on both.
 * The ratio is the median over the rounds, since a turn that a collection of garbage falls into says nothing of its side.
 */
export async function pairedCost(
  ours: () => Promise<number>,
  peer: () => Promise<number>,
  rounds: number,
): Promise<PairedCost> {
  if (rounds < 1) throw new RangeError('at least one round');
  const ratios: number[] = [];
  const peers: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const isOursFirst = round % 2 === 0;
    const [outer, inner] = isOursFirst ? [ours, peer] : [peer, ours];
    const [first, second, third, fourth] = [await outer(), await inner(), await inner(), await outer()];
    const [ofOuter, ofInner] = [first + fourth, second + third];
    ratios.push(isOursFirst ? ofOuter / ofInner : ofInner / ofOuter);
    peers.push((isOursFirst ? ofInner : ofOuter) / 2);
  }
  const usual = median(peers);
  return { ours: usual * median(ratios), peer: usual };
}
