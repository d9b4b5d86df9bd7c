import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync, realpathSync } from 'node:fs';
import { sep } from 'node:path';
import { ServiceError } from '../../protocol/service-error.ts';

/**
 * The bytes of a file that a `file://` address names, where it lies below one of the directories. What is opened is what is
 * checked: links are followed by the system, and then the path of the open file is asked for. Throws `invalid_media`,
 * `image_not_found`, `media_too_large`.
 */
export function readAllowedFile(
  address: string,
  directories: readonly string[],
  bytesMax: number,
  where: string,
): Uint8Array {
  const path = pathOf(address, where);
  // It would tell what files there are, so it is not even looked at.
  if (directories.length === 0) throw notAllowed(where);
  const descriptor = open(path, where);
  try {
    const real = realpathOf(descriptor, path);
    if (!directories.some((directory) => lies(real, directory))) throw notAllowed(where);
    const facts = fstatSync(descriptor);
    if (!facts.isFile()) throw new ServiceError('invalid_media', `${where} is not a file`);
    if (facts.size > bytesMax)
      throw new ServiceError('media_too_large', `${where}: the media of a request are too large`);
    const bytes = new Uint8Array(facts.size);
    let read = 0;
    while (read < bytes.length) {
      const count = readSync(descriptor, bytes, read, bytes.length - read, read);
      if (count === 0) break;
      read += count;
    }
    return bytes.subarray(0, read);
  } finally {
    closeSync(descriptor);
  }
}

function pathOf(address: string, where: string): string {
  try {
    const url = new URL(address);
    if (url.hostname === '' || url.hostname === 'localhost') return Bun.fileURLToPath(url);
  } catch {
    // A path with an encoded slash or a null byte is none.
  }
  throw new ServiceError('invalid_media', `${where}: this is not the address of a file`);
}

/** Without waiting for the other end of a pipe. */
function open(path: string, where: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    // Also where it may not be read: what is outside tells nothing of itself.
    throw new ServiceError('image_not_found', `${where} is not there`);
  }
}

function realpathOf(descriptor: number, path: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return realpathSync(path);
  }
}

function lies(path: string, directory: string): boolean {
  try {
    const root = realpathSync(directory);
    return path.startsWith(root.endsWith(sep) ? root : root + sep);
  } catch {
    return false;
  }
}

function notAllowed(where: string): ServiceError {
  return new ServiceError('invalid_media', `${where}: files may not be read from there`);
}
