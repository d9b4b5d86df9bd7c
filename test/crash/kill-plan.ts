import type { FaultCall } from '../support/fault/fault-control.ts';
import type { SeededRandom } from '../support/fault/seeded-random.ts';

/** How and when one round ends its server. */
export type KillPlan =
  | { kind: 'moment'; afterMs: number }
  /** In the middle of starting, recovery included. */
  | { kind: 'starting'; afterMs: number }
  | { kind: 'failpoint'; failpoint: string; stopFirst: boolean }
  /** At a system call on a file of the data directory, once loaded. */
  | { kind: 'call'; call: FaultCall; path: string; skip: number; stopFirst: boolean };

/** Failpoints that a loaded server passes. */
export const writeFailpoints = [
  'storage.before-commit',
  'storage.after-commit',
  'redo.after-record',
  'redo.between-ranges',
  'redo.before-clear',
  'catalog.before-commit',
  'catalog.after-commit',
  'storage.wal-checkpoint',
  'index.commit.prepared',
];

/** Failpoints of an index checkpoint, which a graceful end makes. */
export const checkpointFailpoints = [
  'index.checkpoint.before-files',
  'checkpoint-files.after-file',
  'checkpoint-files.before-sync',
  'checkpoint-files.before-draft',
  'checkpoint-files.before-rename',
  'checkpoint-files.after-rename',
  'checkpoint-files.before-removal',
  'checkpoint-files.after-removal',
];

export function planKill(random: SeededRandom): KillPlan {
  const dice = random.next();
  if (dice < 0.3) return { kind: 'moment', afterMs: random.between(10, random.chance(0.2) ? 1_800 : 600) };
  if (dice < 0.4) return { kind: 'starting', afterMs: random.between(5, 300) };
  if (dice < 0.7) {
    const stopFirst = random.chance(0.35);
    const name = random.pick(stopFirst ? checkpointFailpoints : writeFailpoints);
    const passes = stopFirst ? 0 : random.between(0, 10);
    return { kind: 'failpoint', failpoint: passes > 0 ? `${name}:${passes}` : name, stopFirst };
  }
  const call = random.pick(['write', 'sync', 'rename', 'directorySync', 'create'] as const);
  const path = random.pick(['documents.db-wal', 'catalog.db', 'indexes', '']);
  return { kind: 'call', call, path, skip: random.between(0, 16), stopFirst: random.chance(0.4) };
}
