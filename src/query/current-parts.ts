import type { IndexedRange } from '../indexing/indexed-range.ts';
import type { RangeReader } from '../storage/reader/range-reader.ts';

/** A part that the server makes of documents: for an enrichment, or for an index. */
export interface MadePart {
  readonly name: string;
  readonly partId: number;
  /** Of what else it is made. */
  readonly source?: MadePart | undefined;
}

/** A range, as far as its parts are asked for. */
export type PartsRange = Pick<IndexedRange, 'producer'> & { readonly stored: Pick<RangeReader, 'parts'> };

interface ReadDocument {
  readonly ordinal: number;
  readonly sequence: number;
}

/**
 * Tells which parts of these documents were made of them as they are. One that was made of an earlier version stays until it is made again,
 * and may tell what was hidden from a caller then. Asked within the instant in which the parts are read.
 */
export function currentParts(
  range: PartsRange,
  made: readonly MadePart[],
  documents: readonly ReadDocument[],
): (document: ReadDocument, part: MadePart) => boolean {
  const ordinals = documents.map(({ ordinal }) => ordinal);
  const facts = new Map<number, { sequences: ReadonlyMap<number, number>; coveredThrough: number }>();
  const factsOf = ({ name, partId }: MadePart) => {
    const known = facts.get(partId);
    if (known) return known;
    // Where nothing makes them, a part is of its document only where it came after it.
    const coveredThrough = range.producer(name)?.report().coveredThrough ?? 0;
    const found = { sequences: range.stored.parts.sequences(ordinals, partId), coveredThrough };
    facts.set(partId, found);
    return found;
  };
  for (const part of made) factsOf(part);
  const isCurrent = (document: ReadDocument, part: MadePart): boolean => {
    const { source } = part;
    if (source && !isCurrent(document, source)) return false;
    const { sequences, coveredThrough } = factsOf(part);
    const own = sequences.get(document.ordinal);
    if (own === undefined) return false;
    const sequenceOfSource = source ? (factsOf(source).sequences.get(document.ordinal) ?? 0) : 0;
    // It is written while its document is as it was read, but what else it is made of may be newer by then.
    if (coveredThrough >= Math.max(document.sequence, sequenceOfSource)) return true;
    return source === undefined && own > document.sequence;
  };
  return isCurrent;
}
