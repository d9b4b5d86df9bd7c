import { awaitNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

/** The links between the vectors of a dense index, on their way into another index of the same documents. */
export class NativeLinks {
  readonly #handle: number;

  constructor(handle: number) {
    this.#handle = handle;
  }

  /** Writes them into a file; returns its bytes, and 0 without a file where there are none yet. */
  async write(path: string): Promise<number> {
    return await awaitNative(() => nativeAddon().writeIndexLinks(this.#handle, path));
  }

  /** Has rows wait without links until `take`, or until the index is opened again. */
  async hold(): Promise<void> {
    await awaitNative(() => nativeAddon().holdIndex(this.#handle));
  }

  /**
   * Links what the index shows, as a file says where its vectors are the same, and makes it durable. Other rows wait to
   * be linked as those that are written, and so do all where the file lies or is damaged: nothing in it is believed.
   */
  async take(path: string): Promise<{ kept: number; relinked: number; left: number; refused?: string }> {
    return JSON.parse(await awaitNative(() => nativeAddon().linkIndex(this.#handle, path)));
  }
}
