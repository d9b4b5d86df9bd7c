import { type IndexDefinition, partIdOf } from '../index-kinds/all-kinds.ts';
import { readFrame, rowKind } from '../lib/document-frame.ts';

/** The kinds of rows in a frame, as far as indexes tell them apart. */
interface FrameContents {
  puts: boolean;
  /** Documents that are gone: every index looks at them, whatever else there is. */
  deletes: boolean;
  /** Followed parts of documents that were written or deleted. */
  parts: ReadonlySet<number>;
}

/** `followed`: the parts that indexes follow. The frame is read as far as needed to know what concerns whom. */
export function contentsOf(bytes: Uint8Array<ArrayBuffer>, followed: ReadonlySet<number>): FrameContents {
  const frame = readFrame(bytes);
  const parts = new Set<number>();
  let puts = false;
  let deletes = false;
  for (let row = 0; row < frame.rowCount && !deletes && !(puts && parts.size === followed.size); row += 1) {
    const kind = frame.kind(row);
    if (kind === rowKind.put) puts = true;
    else if (kind === rowKind.delete) deletes = true;
    else if (kind === rowKind.partPut || kind === rowKind.partDelete) {
      const partId = frame.partId(row);
      if (followed.has(partId)) parts.add(partId);
    }
  }
  return { puts, deletes, parts };
}

/** Whether the index has to look at a frame with these contents. `texts`: artifacts whose text an index of documents holds. */
export function concerns(
  definition: IndexDefinition,
  { puts, deletes, parts }: FrameContents,
  texts: readonly { readonly partId: number }[] = [],
): boolean {
  const partId = partIdOf(definition);
  if (partId !== undefined) return deletes || parts.has(partId);
  return deletes || puts || texts.some((each) => parts.has(each.partId));
}
