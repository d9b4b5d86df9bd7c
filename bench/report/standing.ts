import type { Comparison } from '../measure/comparison.ts';
import { number, renderAim } from './render-comparison.ts';
import type { ResultLine } from './result-line.ts';

export type StandingLine = Comparison & Pick<ResultLine, 'case' | 'tier' | 'at'>;

const header = ['| comparison | figure | aim | | day |', '|---|---|---|---|---|'];

/**
 * The newest run of every comparison that has an aim, as a table in Markdown, in the order of its cases. Smoke runs are left out:
 * aims are of the full and the scale tier.
 */
export function renderStanding(lines: readonly StandingLine[], caseNames: readonly string[]): string {
  const newest = new Map<string, StandingLine>();
  for (const line of lines) {
    const name = nameOf(line);
    const known = newest.get(name);
    if (line.tier !== 'smoke' && (known === undefined || known.at < line.at)) newest.set(name, line);
  }
  const rank = (line: StandingLine) => caseNames.indexOf(line.case);
  const rows = [...newest.values()]
    .filter((line) => line.aim !== undefined && rank(line) >= 0)
    .sort((left, right) => rank(left) - rank(right));
  return `${[...header, ...rows.map(rowOf)].join('\n')}\n`;
}

function rowOf(line: StandingLine): string {
  const { ours, ratio, unit, aim, met, at } = line;
  const suffix = ratio === undefined ? ` ${unit}` : 'x';
  const { median, min, max } = ratio ?? ours;
  const figure = `${number(median)}${suffix} (${number(min)} to ${number(max)})`;
  const judged = aim === undefined ? '' : renderAim(aim, suffix);
  return `| \`${nameOf(line)}\` | ${figure} | ${judged} | ${met === true ? 'met' : '**missed**'} | ${at.slice(0, 10)} |`;
}

function nameOf({ case: of, name, tier }: StandingLine): string {
  return tier === 'full' ? `${of}/${name}` : `${of}/${name}, ${tier}`;
}
