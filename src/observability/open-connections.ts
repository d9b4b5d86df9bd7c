import { readFileSync } from 'node:fs';

const established = '01';

/** Connections of clients that are open to a port of this machine; undefined where the system does not tell. */
export function openConnections(port: number): number | undefined {
  try {
    return ['/proc/self/net/tcp', '/proc/self/net/tcp6'].reduce(
      (total, path) => total + connectionsIn(readFileSync(path, 'latin1'), port),
      0,
    );
  } catch {
    return undefined;
  }
}

/** Counts the lines of the kernel's table (`proc(5)`) whose own side is the port. */
export function connectionsIn(table: string, port: number): number {
  const own = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  let count = 0;
  for (const line of table.split('\n')) {
    const [, local, , state] = line.trim().split(/\s+/, 4);
    if (state === established && local?.endsWith(own)) count += 1;
  }
  return count;
}
