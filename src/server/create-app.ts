import type { LimitOptions } from '../config/limits.ts';
import type { Config } from '../config/options.ts';
import { scanJson } from '../engine/json-scan.ts';
import { App, type AppDependencies } from '../http/listener/app.ts';
import { OriginGuard } from '../http/listener/origin-guard.ts';
import type { Route } from '../http/routing/route.ts';
import type { Metrics } from '../observability/metrics.ts';
import { HttpMetrics } from './http-metrics.ts';
import type { ServerStart } from './running-server.ts';

interface AppDeps extends Omit<ServerStart, 'config'> {
  /** The options as they are now. */
  readonly options: () => Config;
  readonly limits: LimitOptions;
  readonly metrics: Metrics;
}

/** The application of some routes, counted and measured as every server of ours is. */
export function createApp(
  { options, listener, logger, clock, limits, metrics }: AppDeps,
  routes: readonly Route[],
  more: Pick<AppDependencies, 'isInferencePath' | 'permits' | 'authenticator' | 'audit'>,
): App {
  const answered = new HttpMetrics(metrics);
  return new App({
    routes,
    scanJson,
    clock,
    logger: logger.component('http'),
    freshId: requestIds(),
    limits,
    observe: (observation) => answered.observe(observation),
    guard: new OriginGuard(options()),
    logsAccess: () => options().accessLog,
    clientOf: (request) => listener.clientOf(request),
    onFault: () => metrics.increment('faults'),
    extendIdle: (request, seconds) => listener.extendIdle(request, seconds),
    connectionOf: (request) => listener.connectionOf(request),
    ...more,
  });
}

/** Ids that are unique among all processes, at the price of a counter. */
function requestIds(): () => string {
  const prefix = crypto.randomUUID();
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}
