import { assert } from '../lib/assert.ts';
import { awaitNative, callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

/** A compiled table schema, held natively until `close`. */
export class TableSchema implements Disposable {
  private openHandle: number | undefined;

  private constructor(handle: number) {
    this.openHandle = handle;
  }

  /**
   * Compiles the wire form of a TableSchema.
   * Throws ServiceError `invalid_schema` with the place and the reason, or `not_implemented`.
   */
  static async compile(schema: unknown): Promise<TableSchema> {
    const json = JSON.stringify(schema);
    return new TableSchema(await awaitNative(() => nativeAddon().openTableSchema(json)));
  }

  /** The native handle; the schema must be open. */
  get handle(): number {
    assert(this.openHandle !== undefined, 'a table schema is used after it was closed');
    return this.openHandle;
  }

  /** Calls that have already started finish with the schema. */
  close(): void {
    const { openHandle } = this;
    if (openHandle === undefined) return;
    this.openHandle = undefined;
    callNative(() => nativeAddon().closeTableSchema(openHandle));
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
