import { awaitNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

/**
 * Moves the machine code of the process, that of the addon included, to huge pages of memory while it runs. Answers the
 * bytes that lie there now: 0 where the system has no such pages.
 */
export function moveCodeToHugePages(): Promise<number> {
  return awaitNative(() => nativeAddon().moveCodeToHugePages());
}
