import { afterAll, beforeAll, expect } from 'bun:test';
import { systemClock } from '../../../src/lib/clock.ts';
import { ModelPool } from '../../../src/model-host/model-pool.ts';
import { type HostSettings, type ModelSpec, specOfModel } from '../../../src/model-host/model-spec.ts';
import { describeModel } from '../../../src/models/installed-model.ts';
import type { ModelKind } from '../../../src/protocol/models/model-kinds.ts';

const hostEntry = Bun.fileURLToPath(new URL('../../../src/model-host/child/host-main.ts', import.meta.url));
const models = Bun.fileURLToPath(new URL('../../fixtures/models/', import.meta.url));

export interface TestPool extends AsyncDisposable {
  readonly pool: ModelPool;
  /** Why children went away that had not been told to. */
  readonly crashes: string[];
}

/** A pool with real children. */
export function openTestPool({
  memoryBytesMax = 2 ** 33,
  ...bounds
}: {
  readonly loadMs?: number;
  readonly memoryBytesMax?: number;
} = {}): TestPool {
  const crashes: string[] = [];
  const pool = new ModelPool({
    entry: hostEntry,
    environment: Object.fromEntries(Object.entries(process.env).filter((pair): pair is [string, string] => !!pair[1])),
    clock: systemClock,
    options: { loadMs: 60_000, stallMs: 60_000, ...bounds },
    pool: { loadedModelsMax: 4, memoryBytesMax, keepAliveMs: 600_000, checkEveryMs: 1_000, stuckMs: 60_000 },
    onLoading: () => undefined,
    onLoad: () => undefined,
    onUnload: () => undefined,
    onCrash: (_key, reason) => crashes.push(reason),
  });
  return { pool, crashes, [Symbol.asyncDispose]: () => pool.stop() };
}

/** A pool for the tests of a file, none of whose children may go away by itself. */
export function poolOfTests(): () => ModelPool {
  let host: TestPool;
  beforeAll(() => {
    host = openTestPool();
  });
  afterAll(async () => {
    expect(host.crashes).toEqual([]);
    await host[Symbol.asyncDispose]();
  });
  return () => host.pool;
}

/** A fixture model, with one thread and no probe unless told otherwise. */
export function fixtureModel(kind: ModelKind, name: string, settings: Partial<HostSettings> = {}): ModelSpec {
  const all = { threads: 1, contextTokensMax: 1_024, parallelSequences: 4, ...settings };
  return specOfModel(describeModel(kind, name, `${models}${kind}/${name}`), all);
}
