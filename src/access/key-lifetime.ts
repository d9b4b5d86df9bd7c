import { DurationError, parseDuration } from '../lib/duration.ts';

const lifetimeMsMax = 100 * 365 * 24 * 3_600_000;

/** The texts that `readLifetime` takes, for messages. */
export const lifetimeWords = 'a duration of up to 100 years, such as 720h or 30d';

/** How long a key stays valid, in milliseconds; undefined for a text that does not say so. */
export function readLifetime(text: string): number | undefined {
  try {
    const lifetimeMs = parseDuration(text);
    return lifetimeMs > 0 && lifetimeMs <= lifetimeMsMax ? lifetimeMs : undefined;
  } catch (error) {
    if (error instanceof DurationError) return undefined;
    throw error;
  }
}
