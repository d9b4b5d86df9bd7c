/** Keys of the notes that the server keeps of its work on the parts of one definition; they go with the parts. */
export const cursorKey = (partId: number): string => `e/${partId}`;
export const failurePrefix = (partId: number): string => `f/${partId}/`;
export const failureKey = (partId: number, ordinal: number): string => `${failurePrefix(partId)}${ordinal}`;

/** The ordinal of a key that `failureKey` made. */
export function ordinalOfFailure(key: string): number {
  return Number(key.slice(key.lastIndexOf('/') + 1));
}
