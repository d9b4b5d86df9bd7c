import { limits } from '../../src/config/limits.ts';
import { App, type AppDependencies } from '../../src/http/listener/app.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { LogFields, Logger } from '../../src/observability/logger.ts';
import { ServiceError } from '../../src/protocol/service-error.ts';
import { FakeClock } from './fake-clock.ts';

export interface LoggedLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
  readonly error: unknown;
}

/** A logger that keeps what it is told. */
export function keepingLogger(lines: LoggedLine[] = []): Logger & { readonly lines: LoggedLine[] } {
  const keep =
    (level: string) =>
    (message: string, fields: LogFields = {}, error?: unknown) =>
      void lines.push({ level, message, fields, error });
  return {
    lines,
    level: 'info',
    debug: keep('debug'),
    info: keep('info'),
    warn: keep('warn'),
    error: keep('error'),
    component: () => keepingLogger(lines),
  };
}

/** Stands in for the native scan where a test is about something else: only JSON that cannot be parsed is refused. */
export function lenientScan(bytes: Uint8Array): void {
  try {
    JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new ServiceError('invalid_json', 'the body is not JSON');
  }
}

/** An application over these routes with a clock that stands still and request ids `fresh-1`, `fresh-2`, ... */
export function testApp(deps: Partial<AppDependencies> & Pick<AppDependencies, 'routes'>): App & { clock: Clock } {
  let ids = 0;
  const clock = deps.clock ?? new FakeClock();
  const app = new App({
    scanJson: lenientScan,
    clock,
    logger: keepingLogger(),
    freshId: () => `fresh-${++ids}`,
    limits,
    ...deps,
  });
  return Object.assign(app, { clock });
}
