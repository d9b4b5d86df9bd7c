import type { Aim, Comparison } from '../measure/comparison.ts';
import type { Spread } from '../measure/statistics.ts';

/** One comparison as two or three lines for a person: the figures, the ratio with its spread, the aim and whether it is met. */
export function renderComparison(caseName: string, comparison: Comparison): string {
  const { ours, peer, ratio, ratioOfBest, aim, met, unit } = comparison;
  const lines = [`${caseName}/${comparison.name}`, `  ours ${figure(ours, unit)}`];
  if (peer) lines.push(`  ${peer.name} ${figure(peer.values, unit)}`);
  if (ratio)
    lines.push(
      `  ratio ${number(ratio.median)} (${number(ratio.min)} to ${number(ratio.max)})${ratioOfBest === undefined ? '' : `, of the best turns ${number(ratioOfBest)}`}`,
    );
  if (aim) lines.push(`  aim ${renderAim(aim, ratio ? 'x' : ` ${unit}`)}: ${met ? 'met' : 'NOT MET'}`);
  const notes = Object.entries(comparison.notes).map(
    ([key, value]) => `${key} ${typeof value === 'number' ? number(value) : value}`,
  );
  if (notes.length > 0) lines.push(`  ${notes.join(', ')}`);
  return lines.join('\n');
}

function figure(values: Spread, unit: string): string {
  return `${number(values.median)} ${unit} (${number(values.min)} to ${number(values.max)})`;
}

export function renderAim(aim: Aim, suffix: string): string {
  return `${aim.kind === 'at_most' ? '<=' : '>='} ${number(aim.value)}${suffix}`;
}

/** Three significant digits; large numbers as whole ones with thousands separators. */
export function number(value: number): string {
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}
