import { join } from 'node:path';

/**
 * Where an index of a range lives. The number alone tells directories apart; the
 * name, cut to what any file system takes, is for people.
 */
export function indexDirectory(indexesDirectory: string, { name, incarnation }: IndexIdentity): string {
  const readable = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
  return join(indexesDirectory, `${readable}@${incarnation}`);
}

/** The incarnation that a directory is named by; undefined for one that no index has made. */
export function incarnationOf(directoryName: string): number | undefined {
  const digits = /@(\d+)$/.exec(directoryName)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

interface IndexIdentity {
  name: string;
  incarnation: number;
}
