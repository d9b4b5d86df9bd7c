import { callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

/** The JSON text of a stored vector, given as the body of a vector row. */
export function renderVector(body: Uint8Array): string {
  return callNative(() => nativeAddon().renderVector(body));
}
