import { callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

/** The names in which a user's regular expression matches. Throws ServiceError `invalid_request` when it is broken. */
export function namesMatching(pattern: string, names: readonly string[]): string[] {
  const matches = callNative(() => nativeAddon().matchNames(pattern, [...names]));
  return names.filter((_, index) => matches[index]);
}
