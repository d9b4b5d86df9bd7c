import type { Placement } from './machine/placement.ts';
import type { Comparison } from './measure/comparison.ts';

/** `smoke`: every case in a minute together. `full`: ten minutes. `scale`: the full tier at a million documents, by hand. */
export const tiers = ['smoke', 'full', 'scale'] as const;
export type Tier = (typeof tiers)[number];

export interface BenchContext {
  tier: Tier;
  /** How often the sides alternate. */
  pairs: number;
  placement: Placement;
  seed: number;
  /** Instead of as many as the tier says. */
  documents: number | undefined;
  /** Progress for a person, on standard error. */
  progress(message: string): void;
}

export interface BenchCase {
  name: string;
  summary: string;
  run(context: BenchContext): Promise<Comparison[]>;
}
