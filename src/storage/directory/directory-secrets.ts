import { randomBytes } from '../../lib/random-bytes.ts';
import type { DataDirectory } from './data-directory.ts';
import { DataDirectoryError } from './data-directory-error.ts';
import { readIfPresent, writeDurably } from './durable-file.ts';

/** Keys that belong to a data directory. */
export interface DirectorySecrets {
  /** Authenticates cursors; 32 bytes. */
  cursorKey: Uint8Array;
}

const keyBytes = 32;

/**
 * Reads `secrets.json`, or makes it with fresh keys when there is none: only the owner may read it. Cursors of a lost
 * file are refused, nothing else is lost with it.
 */
export function openSecrets(directory: DataDirectory): DirectorySecrets {
  const text = readIfPresent(directory.secretsFile);
  if (text !== undefined) return parseSecrets(text, directory);
  const secrets = { cursorKey: randomBytes(keyBytes) };
  try {
    writeSecrets(directory, secrets);
  } catch (error) {
    // Reads go on where nothing can be written: the keys then last as long as the process.
    if (!takesNoWrites(error)) throw error;
  }
  return secrets;
}

function takesNoWrites(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ['ENOSPC', 'EDQUOT', 'EROFS'].includes(String(error.code));
}

function writeSecrets(directory: DataDirectory, { cursorKey }: DirectorySecrets): void {
  const text = `${JSON.stringify({ cursor_key: Buffer.from(cursorKey).toString('base64') })}\n`;
  writeDurably(directory.secretsFile, text, 0o600);
}

function parseSecrets(text: string, directory: DataDirectory): DirectorySecrets {
  try {
    const content = JSON.parse(text) as { cursor_key?: unknown } | null;
    if (typeof content?.cursor_key === 'string') {
      const cursorKey = Buffer.from(content.cursor_key, 'base64');
      if (cursorKey.length === keyBytes) return { cursorKey };
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new DataDirectoryError(
    'damaged',
    `${directory.secretsFile} is not readable as secrets`,
    'restore the file from a backup, or delete it: a new one is made, and cursors of the old one are refused',
  );
}
