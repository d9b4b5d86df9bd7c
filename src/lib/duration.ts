const unitMs: ReadonlyMap<string, number> = new Map([
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
]);

/** A text that is not a duration. The message is a whole sentence for whoever wrote it. */
export class DurationError extends Error {
  override readonly name = 'DurationError';
}

/**
 * Milliseconds of a duration such as `30s`, `5m`, `24h`, `7d`, `250ms` or `1h30m`: whole numbers with a unit, one
 * after the other, without spaces. Fails with a DurationError.
 */
export function parseDuration(text: string): number {
  const component = /(\d{1,16})(ms|[smhd])/y;
  let total = 0;
  let position = 0;
  while (position < text.length) {
    component.lastIndex = position;
    const found = component.exec(text);
    if (!found) break;
    total += Number(found[1]) * (unitMs.get(found[2] ?? '') ?? 0);
    position = component.lastIndex;
  }
  if (text === '' || position < text.length) {
    const shown = text.length > 40 ? `${text.slice(0, 40)}...` : text;
    throw new DurationError(
      `"${shown}" is not a duration: write whole numbers with the units ms, s, m, h or d, such as 30s, 24h or 1h30m`,
    );
  }
  if (!Number.isSafeInteger(total)) throw new DurationError(`the duration "${text.slice(0, 40)}" is too long`);
  return total;
}

/** The shortest text that `parseDuration` reads back as the same number of milliseconds; `0s` for nothing. */
export function formatDuration(durationMs: number): string {
  if (!Number.isSafeInteger(durationMs) || durationMs < 0) {
    throw new RangeError(`a duration is a whole number of milliseconds from 0 on, not ${durationMs}`);
  }
  let rest = durationMs;
  let text = '';
  for (const [unit, size] of unitMs) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text === '' ? '0s' : text;
}
