/** The path of a folder as connections give it, without slashes at its ends; empty for the whole of a bucket or disk. */
export function folderPath(written: string): string {
  return written.replaceAll(/^\/+|\/+$/g, '');
}

/** Whether a path leads below the folder: `team-a` has nothing of `team-ab`, the empty one everything. */
export function isBelow(path: string, folder: string): boolean {
  return folder === '' || path.startsWith(`${folder}/`);
}
