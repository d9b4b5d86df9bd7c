/**
 * Notes on deleted documents: lists of edges in any range may still lead to them. Such a note lies in the range of the
 * documents, and goes when no list names them any more.
 */
export const removedTargetsPrefix = 'x/';

export interface RemovedTargets {
  /** For each range of the table, in order, a sequence: what a list has since then or before leads to nothing any more. */
  through: number[];
  keys: string[];
}

/** `sequence` is that of the last row of the write that deleted the documents. */
export function removedTargetsKey(sequence: number): string {
  return removedTargetsPrefix + String(sequence).padStart(16, '0');
}

export function removedTargetsBytes(removed: RemovedTargets): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(removed));
}

export function readRemovedTargets(value: Uint8Array): RemovedTargets {
  return JSON.parse(new TextDecoder().decode(value)) as RemovedTargets;
}
