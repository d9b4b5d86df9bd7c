import { type IndexDefinition, partIdOf } from '../index-kinds/all-kinds.ts';
import { readFrame, rowKind } from '../lib/document-frame.ts';

/** What a frame holds, as far as indexes have to tell it apart. */
interface FrameContents {
  puts: boolean;
  /** Documents that are gone: every index looks at them, whatever else there is. */
  deletes: boolean;
  /** Indexes whose vectors were written or deleted. */
  vectors: ReadonlySet<number>;
}

/** `vectorIndexes`: how many indexes take vectors. The frame is read as far as needed to know what concerns whom. */
export function contentsOf(bytes: Uint8Array<ArrayBuffer>, vectorIndexes: number): FrameContents {
  const frame = readFrame(bytes);
  const vectors = new Set<number>();
  let puts = false;
  let deletes = false;
  for (let row = 0; row < frame.rowCount && !deletes && !(puts && vectors.size >= vectorIndexes); row += 1) {
    const kind = frame.kind(row);
    if (kind === rowKind.put) puts = true;
    else if (kind === rowKind.delete) deletes = true;
    else vectors.add(frame.vectorIndexId(row));
  }
  return { puts, deletes, vectors };
}

/** Whether the index has to look at a frame with these contents. */
export function concerns(definition: IndexDefinition, { puts, deletes, vectors }: FrameContents): boolean {
  const partId = partIdOf(definition);
  return deletes || (partId === undefined ? puts : vectors.has(partId));
}
