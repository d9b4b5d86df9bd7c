import { availableParallelism } from 'node:os';

/**
 * Where processes run. With two cores or more the server (or the peer in its place) has cpu 0 to itself and the load client
 * cpu 1; otherwise, or without `taskset`, nothing is pinned and the results say so.
 */
export type Placement = 'server cpu0, client cpu1' | 'not pinned';

/** Set for the pinned child of `run.ts`, so that it is pinned once. */
export const pinnedVariable = 'SUNDEW_BENCH_PINNED';

export function placementOf(pinned: boolean): Placement {
  return pinned ? 'server cpu0, client cpu1' : 'not pinned';
}

export function canPin(): boolean {
  return process.platform === 'linux' && Bun.which('taskset') !== null && onlineCores() >= 2;
}

/** `command` held to one core, where the machine allows it. */
export function pinnedCommand(core: 0 | 1, command: readonly string[], pinned: boolean): string[] {
  return pinned ? ['taskset', '-c', String(core), ...command] : [...command];
}

/** Cores of the machine; `availableParallelism` counts only those that this process is held to. */
function onlineCores(): number {
  return Math.max(availableParallelism(), navigator.hardwareConcurrency);
}
