import type { ResultLine } from './result-line.ts';

/** How much worse a median ratio may be than in the baseline before the run fails. */
export const regressionShareMax = 0.25;

type Judged = Pick<ResultLine, 'case' | 'name' | 'ratio' | 'aim'>;

export interface Regression {
  name: string;
  before: number;
  now: number;
}

/**
 * Ratios that are more than a quarter worse than in the baseline. Only ratios are compared: they survive a change of machine,
 * absolute figures do not. Which way is worse comes from the aim; a ratio without an aim is not judged.
 */
export function findRegressions(baseline: readonly Judged[], current: readonly Judged[]): Regression[] {
  const before = new Map(baseline.map((line) => [`${line.case}/${line.name}`, line]));
  return current.flatMap((line) => {
    const name = `${line.case}/${line.name}`;
    const old = before.get(name)?.ratio?.median;
    const now = line.ratio?.median;
    if (old === undefined || now === undefined || !line.aim) return [];
    const worse = line.aim.kind === 'at_most' ? now / old : old / now;
    return worse > 1 + regressionShareMax ? [{ name, before: old, now }] : [];
  });
}
