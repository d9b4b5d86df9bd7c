import { assert } from '../lib/assert.ts';
import { awaitNative, callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

/** A schema as the addon holds it. */
interface CompiledSchema {
  readonly json: string;
  readonly handle: Promise<number>;
  users: number;
}

/** By their JSON: tables with equal schemas share one. */
const compiled = new Map<string, CompiledSchema>();

/** A compiled table schema, held natively until `close`. */
export class TableSchema implements Disposable {
  readonly #schema: CompiledSchema;
  #openHandle: number | undefined;

  private constructor(schema: CompiledSchema, handle: number) {
    this.#schema = schema;
    this.#openHandle = handle;
  }

  /**
   * Compiles the wire form of a TableSchema.
   * Throws ServiceError `invalid_schema` with the place and the reason, or `not_implemented`.
   */
  static async compile(schema: unknown): Promise<TableSchema> {
    const shared = sharedSchema(JSON.stringify(schema));
    shared.users += 1;
    try {
      return new TableSchema(shared, await shared.handle);
    } catch (error) {
      leave(shared);
      throw error;
    }
  }

  /** The native handle; the schema must be open. */
  get handle(): number {
    assert(this.#openHandle !== undefined, 'a table schema is used after it was closed');
    return this.#openHandle;
  }

  /** Calls that have already started finish with the schema. */
  close(): void {
    const handle = this.#openHandle;
    if (handle === undefined) return;
    this.#openHandle = undefined;
    if (leave(this.#schema)) callNative(() => nativeAddon().closeTableSchema(handle));
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function sharedSchema(json: string): CompiledSchema {
  const known = compiled.get(json);
  if (known) return known;
  const schema = { json, handle: awaitNative(() => nativeAddon().openTableSchema(json)), users: 0 };
  compiled.set(json, schema);
  return schema;
}

/** Whether nobody else uses the schema. */
function leave(schema: CompiledSchema): boolean {
  schema.users -= 1;
  if (schema.users > 0) return false;
  compiled.delete(schema.json);
  return true;
}
