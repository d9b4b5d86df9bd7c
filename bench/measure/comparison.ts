import { type Spread, spread } from './statistics.ts';

/** The aim of a figure: `at_most` for times and costs, `at_least` for rates. */
export interface Aim {
  kind: 'at_most' | 'at_least';
  value: number;
}

/** One thing measured: ours alone against an absolute aim, or ours beside a peer against an aim on the ratio. */
export interface Comparison {
  /** Stable within its case; the report and the regression check go by `case/name`. */
  name: string;
  /** Of the values of both sides, e.g. `us`, `docs/s`. */
  unit: string;
  ours: Spread;
  peer?: { name: string; values: Spread };
  /** Ours divided by the peer, pair by pair. */
  ratio?: Spread;
  /** The best turn of ours divided by the peer's best: nearest to what a quiet machine shows when this one was not. */
  ratioOfBest?: number;
  /** On the median ratio where there is a peer, else on the median of ours. */
  aim?: Aim;
  met?: boolean;
  /** Anything that a reader needs beside the figures: sizes, durability, how it was taken. */
  notes: Record<string, string | number>;
}

export interface ComparisonInput {
  name: string;
  unit: string;
  ours: readonly number[];
  peer?: { name: string; values: readonly number[] };
  aim?: Aim;
  notes?: Record<string, string | number>;
}

/** Ratios are taken inside each pair, where both sides saw the same state of the machine, and only then summed up. */
export function compare(input: ComparisonInput): Comparison {
  const result: Comparison = {
    name: input.name,
    unit: input.unit,
    ours: spread(input.ours),
    notes: input.notes ?? {},
  };
  const { peer, aim } = input;
  if (peer) {
    if (peer.values.length !== input.ours.length) throw new RangeError(`${input.name}: the sides differ in length`);
    result.peer = { name: peer.name, values: spread(peer.values) };
    result.ratio = spread(input.ours.map((value, index) => value / (peer.values[index] ?? Number.NaN)));
  }
  if (aim) {
    result.aim = aim;
    if (peer) result.ratioOfBest = best(input.ours, aim) / best(peer.values, aim);
    result.met = meets((result.ratio ?? result.ours).median, aim);
  }
  return result;
}

function best(values: readonly number[], aim: Aim): number {
  return aim.kind === 'at_most' ? Math.min(...values) : Math.max(...values);
}

export function meets(value: number, aim: Aim): boolean {
  return aim.kind === 'at_most' ? value <= aim.value : value >= aim.value;
}
