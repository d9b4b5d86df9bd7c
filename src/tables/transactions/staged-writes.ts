import { must } from '../../lib/assert.ts';
import { memberTexts } from '../../lib/text/json-text.ts';

/** A transform as it was sent. */
interface StagedTransform {
  /** JSON array. */
  readonly operations: Uint8Array;
  readonly upsert: boolean;
}

/** The staged write of one key. */
export interface StagedKey {
  /** JSON object to be put; null: the document is deleted; undefined: it stays what is stored. */
  readonly base: Uint8Array | null | undefined;
  /** Whether what is stored is deleted before `base` is put, so that nothing beside it stays, such as a vector. */
  readonly isNew: boolean;
  /** In the order in which they are applied to that. */
  readonly transforms: readonly StagedTransform[];
}

/** One operation, as a request has it. */
export interface StagedOperation {
  readonly table: string;
  readonly key: string;
  readonly change: { readonly base: Uint8Array | null } | { readonly transform: StagedTransform };
}

/** A `StagedKey` that grows in place. */
interface Entry {
  readonly base: Uint8Array | null | undefined;
  readonly isNew: boolean;
  readonly transforms: StagedTransform[];
  size: StagedSize;
}

/** The size of staged writes. */
interface StagedSize {
  readonly operations: number;
  /** Of memory. */
  readonly bytes: number;
}

/** The writes staged between two savepoints, by table and key. */
type Layer = Map<string, Map<string, Entry>>;

const nothing: StagedSize = { operations: 0, bytes: 0 };

/** The cost of an operation beside its bytes. */
const overheadBytes = 128;

/**
 * The writes of a session, one entry a key: what a later operation replaces is forgotten at once. A savepoint closes the
 * layer that is written to and opens another above it; a rollback drops layers.
 */
export class StagedWrites {
  #layers: Layer[] = [new Map()];
  #sizes: StagedSize[] = [nothing];

  /** Of everything that is staged, what a rollback could bring back included. */
  get size(): StagedSize {
    return this.#sizes.reduce(sum, nothing);
  }

  stage(operation: StagedOperation): void {
    const { table, key, change } = operation;
    const layer = must(this.#layers.at(-1), 'a layer to write to');
    const keys = layer.get(table) ?? new Map<string, Entry>();
    layer.set(table, keys);
    const held = keys.get(key);
    let size = sizeOf(operation);
    if ('base' in change) {
      const put = replaced(held, change.base);
      size = sizeOf({ table, key, change: put });
      keys.set(key, { ...put, transforms: [], size });
    } else if (held) {
      held.transforms.push(change.transform);
      held.size = sum(held.size, size);
    } else keys.set(key, { base: undefined, isNew: false, transforms: [change.transform], size });
    const freed = 'base' in change && held ? held.size : nothing;
    const before = this.#sizes.at(-1) ?? nothing;
    this.#sizes[this.#sizes.length - 1] = {
      operations: before.operations + size.operations - freed.operations,
      bytes: before.bytes + size.bytes - freed.bytes,
    };
  }

  /** A place to return to. */
  mark(): number {
    this.#layers.push(new Map());
    this.#sizes.push(nothing);
    return this.#layers.length - 1;
  }

  /** Forgets what was staged after the mark. */
  rollback(mark: number): void {
    this.#layers = [...this.#layers.slice(0, mark), new Map()];
    this.#sizes = [...this.#sizes.slice(0, mark), nothing];
  }

  of(table: string, key: string): StagedKey | undefined {
    const none: StagedKey | undefined = undefined;
    return this.#layers.map((layer): StagedKey | undefined => layer.get(table)?.get(key)).reduce(over, none);
  }

  /** All tables and keys. */
  all(): Map<string, Map<string, StagedKey>> {
    const all = new Map<string, Map<string, StagedKey>>();
    for (const layer of this.#layers) {
      for (const [table, keys] of layer) {
        const merged = all.get(table) ?? new Map<string, StagedKey>();
        all.set(table, merged);
        for (const [key, staged] of keys) merged.set(key, over(merged.get(key), staged) ?? staged);
      }
    }
    return all;
  }
}

/** A later entry on top of an earlier one. */
function over(below: StagedKey | undefined, above: StagedKey | undefined): StagedKey | undefined {
  if (!below || !above || above.isNew) return above ?? below;
  if (above.base !== undefined) return { ...replaced(below, above.base), transforms: above.transforms };
  return { ...below, transforms: [...below.transforms, ...above.transforms] };
}

/** A document, or a deletion, on top of an earlier entry. */
function replaced(
  below: Pick<StagedKey, 'base' | 'isNew'> | undefined,
  base: Uint8Array | null,
): { base: Uint8Array | null; isNew: boolean } {
  if (base === null) return { base, isNew: false };
  if (below?.base === null) return { base, isNew: true };
  return { base: below?.base ? withBeside(base, below.base) : base, isNew: below?.isNew ?? false };
}

/** Members of what is kept beside a document, by index: a write that leaves an index out keeps what it has. */
export const besideMembers = ['_embeddings', '_edges'];

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** A document with the vectors and edges of the one that it replaces, as far as it does not name their index itself. */
function withBeside(document: Uint8Array, earlier: Uint8Array): Uint8Array {
  const before = memberTexts(decoder.decode(earlier));
  if (!besideMembers.some((name) => before.has(name))) return document;
  const members = memberTexts(decoder.decode(document));
  for (const name of besideMembers) {
    const [kept, own] = [before.get(name), members.get(name)];
    if (kept?.startsWith('{')) {
      const indexes = own?.startsWith('{') ? memberTexts(own) : [];
      members.set(name, objectText(new Map([...memberTexts(kept), ...indexes])));
    }
  }
  return encoder.encode(objectText(members));
}

function objectText(members: ReadonlyMap<string, string>): string {
  return `{${[...members].map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;
}

/** The size of an operation. */
export function sizeOf({ key, change }: StagedOperation): StagedSize {
  const body = 'base' in change ? change.base : change.transform.operations;
  return { operations: 1, bytes: overheadBytes + 2 * key.length + (body?.byteLength ?? 0) };
}

export function sum(left: StagedSize, right: StagedSize): StagedSize {
  return { operations: left.operations + right.operations, bytes: left.bytes + right.bytes };
}
