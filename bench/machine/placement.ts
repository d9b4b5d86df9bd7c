import { cpus } from 'node:os';

/** The cores by role: `server` (or the peer in its place), the load `client`, or a process that may use `all` cores. */
export type Role = 'server' | 'client' | 'all';

/**
 * Holds processes to cores. With two cores or more and `taskset`, the server has cpu 0 to itself and the load client cpu 1;
 * otherwise nothing is pinned, and the results say so.
 */
export class Placement {
  readonly pinned: boolean;

  constructor(pinned: boolean) {
    this.pinned = pinned;
  }

  static possible(): boolean {
    return process.platform === 'linux' && Bun.which('taskset') !== null && cpus().length >= 2;
  }

  /** `command`, held to the cores of its role. `all` undoes what a pinned parent would hand down. */
  command(role: Role, command: readonly string[]): string[] {
    if (!this.pinned) return [...command];
    const cores = { server: '0', client: '1', all: `0-${cpus().length - 1}` }[role];
    return ['taskset', '-c', cores, ...command];
  }

  toString(): string {
    return this.pinned ? 'server cpu0, client cpu1' : 'not pinned';
  }
}
