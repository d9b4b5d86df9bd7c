import type { RemovedTargets } from '../../lib/parts/edge-notes.ts';
import type { PackedBlock, PackedTotals } from './block-packer.ts';

/** The file that a range of documents lies in, and what of it is copied. */
export interface CopiedRange {
  /** The range's file. */
  path: string;
  rangeId: number;
  /** Parts that come along. */
  parts: readonly number[];
}

/** A file of an archive that is being filled, by its number. */
interface FileRequest {
  file: number;
}

/** Blocks that became full, to be written in their order. */
export interface CopyStep {
  blocks: PackedBlock[];
}

/** A step that is followed by others until there is no `more`; `after` says where the next one begins. */
export interface CopyPage extends CopyStep {
  after: number;
  more: boolean;
  /** Bytes that were read. */
  bytes: number;
}

/** The calls of the copying thread. Steps do about a block of work each, so that a copy can be given up between them. */
export type CopyCalls = {
  /** Begins a file; `range` where it gets something of a range. */
  open: [FileRequest & { range?: CopiedRange }, undefined];
  /** Documents behind an ordinal. */
  documents: [FileRequest & { after: number }, CopyPage];
  /** As `documents`, read and compared with their checksums alone. */
  check: [FileRequest & { after: number }, CopyPage];
  /** Lists of the ordinals behind `after` that are there: of documents, or of those that have a part. */
  live: [FileRequest & { part: number | undefined; after: number }, CopyPage];
  /** Changes behind a sequence. */
  changes: [FileRequest & { after: number }, CopyPage];
  /** A page of changes that was read elsewhere. */
  page: [FileRequest & { frame: Uint8Array<ArrayBuffer> }, CopyStep];
  /** Notes on deleted documents. */
  removed: [FileRequest & { note: string; targets: RemovedTargets }, CopyStep];
  /** Bytes of a file of this machine, from `after` up to `end`. */
  bytes: [FileRequest & { path: string; after: number; end: number }, CopyPage];
  /** Ends a file: its last blocks, and what it has as a whole. */
  finish: [FileRequest, CopyStep & { totals: PackedTotals }];
  /** Forgets a file. */
  close: [FileRequest, undefined];
};
