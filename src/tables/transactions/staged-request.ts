import { entryWords, type ScannedWrite } from '../../engine/write-frame.ts';
import { must } from '../../lib/assert.ts';
import { rowKind } from '../../lib/document-frame.ts';
import type { StagedOperation } from './staged-writes.ts';

/** Flags of a scanned entry, as in `native/engine/src/write/write_scan.rs`. */
const keyIsEscaped = 1;
const upserts = 1 << 5;

const decoder = new TextDecoder();

/**
 * The operations of a scanned request over several tables, with bytes of
 * their own, in the order in which a batch applies them.
 */
export function operationsOf(bytes: Uint8Array, { sections, entries }: ScannedWrite): StagedOperation[] {
  const operations: (StagedOperation & { readonly kind: number })[] = [];
  const slice = (offset: number) => {
    const start = must(entries[offset], 'an entry that is whole');
    return bytes.slice(start, start + must(entries[offset + 1], 'an entry that is whole'));
  };
  for (let at = 0; at < entries.length; at += entryWords) {
    const table = must(sections[entries[at] ?? 0], 'a table for each section');
    const kind = must(entries[at + 1], 'an entry that is whole');
    const flags = must(entries[at + 6], 'an entry that is whole');
    const key = keyOf(decoder.decode(slice(at + 2)), flags);
    if (kind === rowKind.put) operations.push({ table, key, kind, change: { base: slice(at + 4) } });
    else if (kind === rowKind.delete) operations.push({ table, key, kind, change: { base: null } });
    else {
      const transform = { operations: slice(at + 4), upsert: (flags & upserts) !== 0 };
      operations.push({ table, key, kind, change: { transform } });
    }
  }
  return operations.sort((left, right) => left.kind - right.kind);
}

function keyOf(literal: string, flags: number): string {
  return (flags & keyIsEscaped) === 0 ? literal : (JSON.parse(`"${literal}"`) as string);
}
