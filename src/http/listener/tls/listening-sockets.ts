import type { dlopen } from 'bun:ffi';
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Of a socket that listens, in the tables of the system. */
const listening = '0A';

/** Descriptors of this process that listen on a port, at any address; none where the system does not tell. */
export function listeningSockets(port: number): readonly number[] {
  try {
    const inodes = new Set(['tcp', 'tcp6'].flatMap((table) => inodesIn(`/proc/self/net/${table}`, port)));
    return readdirSync('/proc/self/fd')
      .filter((name) => inodes.has(inodeOf(name)))
      .map(Number);
  } catch {
    return [];
  }
}

/** Lines of `/proc/net/tcp`: the number of the line, `ADDRESS:PORT` of both ends, the state, and six members further the inode. */
function inodesIn(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync(table, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .flatMap(([, local, , state, , , , , , inode]) =>
      local?.endsWith(suffix) === true && state === listening && inode !== undefined ? [inode] : [],
    );
}

function inodeOf(descriptor: string): string {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1] ?? '';
  } catch {
    // It was closed meanwhile, as that of this folder is.
    return '';
  }
}

/**
 * Closes listening sockets below the runtime, which by itself stops to accept only together with connections whose next request it
 * has not read yet. The descriptors stay taken, by a file that nothing happens on: the runtime closes them with the listener. Returns
 * whether they are closed.
 */
export function closeListening(sockets: readonly number[]): boolean {
  if (sockets.length === 0) return false;
  try {
    const ffi = process.getBuiltinModule('bun:ffi') as { dlopen: typeof dlopen };
    const { symbols } = ffi.dlopen('libc.so.6', { dup2: { args: ['i32', 'i32'], returns: 'i32' } });
    const nothing = openSync('/dev/null', 'r');
    try {
      return sockets.every((socket) => symbols.dup2(nothing, socket) === socket);
    } finally {
      closeSync(nothing);
    }
  } catch {
    return false;
  }
}
