import { existsSync } from 'node:fs';
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

/** A checkout has what it has built; the published package has an optional package for each platform. */
function load(): NativeAddon {
  const { platform, arch } = process;
  const require = createRequire(import.meta.url);
  const built = Bun.fileURLToPath(new URL(`../../native/sundew.${platform}-${arch}.node`, import.meta.url));
  const published = `sundew-${platform}-${arch}`;
  try {
    return require(existsSync(built) ? built : published) as NativeAddon;
  } catch (cause) {
    const hint = `bun run build:native builds it in a checkout, and the package "${published}" has it for others`;
    throw new Error(`the native engine is missing or does not load here: ${hint}`, { cause });
  }
}
