import { createRequire } from 'node:module';
import type * as Native from '../../native/binding/index.d.ts';

type NativeAddon = typeof Native;

let loaded: NativeAddon | undefined;

/**
 * The native addon, loaded at first use. Only the main thread may call this: the addon keeps threads and handles that
 * do not survive the end of a Worker.
 */
export function nativeAddon(): NativeAddon {
  loaded ??= load();
  return loaded;
}

function load(): NativeAddon {
  const file = new URL(`../../native/sundew.${process.platform}-${process.arch}.node`, import.meta.url).pathname;
  try {
    return createRequire(import.meta.url)(file) as NativeAddon;
  } catch (cause) {
    throw new Error('the native engine is not built or does not load here; run: bun run build:native', { cause });
  }
}
