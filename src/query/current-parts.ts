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

/** Facts about the parts of documents. */
interface PartFacts<Document> {
  /** By which change the document has got the part; undefined where it has none. */
  sequenceOf(document: Document, part: MadePart): number | undefined;
  /** Up to which change of the range these parts are made; 0 where nothing makes them. */
  coveredThrough(part: MadePart): number;
}

/**
 * Tells which parts of these documents were made of them as they are. One that was made of an earlier version stays
 * until it is made again, and may tell what was hidden from a caller then. Asked within the instant in which the parts
 * are read.
 */
export function currentParts(
  range: PartsRange,
  made: readonly MadePart[],
  documents: readonly ReadDocument[],
): (document: ReadDocument, part: MadePart) => boolean {
  const ordinals = documents.map(({ ordinal }) => ordinal);
  const sequences = new Map<number, ReadonlyMap<number, number>>();
  const covered = new Map<number, number>();
  for (const part of withSources(made)) {
    sequences.set(part.partId, range.stored.parts.sequences(ordinals, part.partId));
    covered.set(part.partId, coveredThrough(range, part));
  }
  const facts: PartFacts<ReadDocument> = {
    sequenceOf: ({ ordinal }, { partId }) => sequences.get(partId)?.get(ordinal),
    coveredThrough: ({ partId }) => covered.get(partId) ?? 0,
  };
  return (document, part) => isCurrentPart(document, part, facts);
}

/** These parts, and all that they are made of. */
export function withSources(made: readonly MadePart[]): MadePart[] {
  const chains = made.flatMap((part) => (part.source ? [part, ...withSources([part.source])] : [part]));
  return [...new Map(chains.map((part) => [part.partId, part])).values()];
}

/** Up to which change the range has these parts; 0 where nothing makes them. */
export function coveredThrough(range: Pick<PartsRange, 'producer'>, { name }: MadePart): number {
  return range.producer(name)?.report().coveredThrough ?? 0;
}

/** Whether a part was made of its document as it is. */
export function isCurrentPart<Document extends Pick<ReadDocument, 'sequence'>>(
  document: Document,
  part: MadePart,
  facts: PartFacts<Document>,
): boolean {
  const { source } = part;
  if (source && !isCurrentPart(document, source, facts)) return false;
  const own = facts.sequenceOf(document, part);
  if (own === undefined) return false;
  const sequenceOfSource = source ? (facts.sequenceOf(document, source) ?? 0) : 0;
  // It is written while its document is as it was read, but what else it is made of may be newer by then.
  if (facts.coveredThrough(part) >= Math.max(document.sequence, sequenceOfSource)) return true;
  // Where nothing makes them, a part is of its document only where it came after it.
  return source === undefined && own > document.sequence;
}
