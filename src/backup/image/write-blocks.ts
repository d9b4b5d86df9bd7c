import { promises as fs } from 'node:fs';
import { ServiceError } from '../../protocol/service-error.ts';
import type { readBlocks } from '../archive/archive-reader.ts';

/** Writes blocks into a new file of this machine, which is not synced. */
export async function writeBlocks(
  path: string,
  blocks: ReturnType<typeof readBlocks>,
  signal: AbortSignal,
): Promise<void> {
  const file = await fs.open(path, 'wx', 0o600);
  try {
    for await (const { bytes } of blocks) {
      signal.throwIfAborted();
      for (let at = 0; at < bytes.byteLength; ) {
        at += (await file.write(bytes, at, bytes.byteLength - at)).bytesWritten;
      }
    }
  } finally {
    await file.close();
  }
}

/** The error to be thrown in place of one: `insufficient_storage` where the disk is full. */
export function outOfRoom(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  const message = 'the data directory has no room for what the backup has; make room and try again';
  return new ServiceError('insufficient_storage', message, { cause: error });
}
