import type { Tier } from '../case.ts';
import type { Provenance } from '../machine/provenance.ts';
import type { Comparison } from '../measure/comparison.ts';

/** One line of a results file. */
export interface ResultLine extends Comparison, Provenance {
  case: string;
  tier: Tier;
  pairs: number;
  seed: number;
  /** Which cores server and client had. */
  placement: string;
  /** RFC 3339, when the case ended. */
  at: string;
  /** Load averages before and after the case. */
  loadBefore: number[];
  loadAfter: number[];
  durationMs: number;
}
