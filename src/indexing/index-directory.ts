import { join } from 'node:path';

/** Where an index of a range lives. The number alone tells directories apart; the name, cut to what any file system takes, is for people. */
export function indexDirectory(indexesDirectory: string, { name, incarnation }: IndexIdentity): string {
  const readable = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
  return join(indexesDirectory, `${readable}@${incarnation}`);
}

interface IndexIdentity {
  name: string;
  incarnation: number;
}
