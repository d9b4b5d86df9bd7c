import { join } from 'node:path';
import { type Caller, everyone } from '../../src/access/principal.ts';
import { loadConfig } from '../../src/config/load.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import type { DatabaseOptions } from '../../src/server/database/database-core.ts';
import { type Database, openDatabase } from '../../src/server/database/open-database.ts';
import { keepingLogger } from './test-app.ts';

/** A database of its own below the directory, without a listener. */
export async function openTestDatabase(directory: string, given: Partial<DatabaseOptions> = {}): Promise<Database> {
  const flags = new Map([['--data-dir', join(directory, 'data')]]);
  const environment = { SUNDEW__STORAGE__RESERVE: '0' };
  const { config } = loadConfig({ flags, environment, file: undefined, readFile: () => '' });
  return openDatabase({
    options: () => config,
    clock: systemClock,
    logger: keepingLogger(),
    metrics: new Metrics(),
    ...given,
  });
}

/** Somebody who may do everything and waits for ever, but for what is given. */
export function testCaller(given: Partial<Caller> = {}): Caller & { isAlone(): boolean } {
  const { signal } = new AbortController();
  return { principal: everyone, requestId: 'r', signal, rowFilter: undefined, isAlone: () => false, ...given };
}

/** A body as a service takes it. */
export function bodyOf(value: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
