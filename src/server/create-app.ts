import type { LimitOptions } from '../config/limits.ts';
import type { Config } from '../config/options.ts';
import { scanJson } from '../engine/json-scan.ts';
import { App, type AppDependencies } from '../http/listener/app.ts';
import { OriginGuard } from '../http/listener/origin-guard.ts';
import type { ServerListener } from '../http/listener/server-listener.ts';
import type { Route } from '../http/routing/route.ts';
import type { Metrics } from '../observability/metrics.ts';
import { HttpMetrics } from './observability/http-metrics.ts';
import type { ServerStart } from './running-server.ts';

/** Where requests come in: what is known of their connections. */
export type Socket = Pick<ServerListener, 'url' | 'clientOf' | 'extendIdle' | 'connectionOf'>;

interface AppDeps extends Omit<ServerStart, 'config' | 'listener'> {
  /** Undefined where requests are calls in this process, whose program says who may ask. */
  readonly socket: Socket | undefined;

  /** The options as they are now. */
  readonly options: () => Config;
  readonly limits: LimitOptions;
  readonly metrics: Metrics;
}

/** The application of some routes, counted and measured as every server of ours is. */
export function createApp(
  { options, socket, logger, clock, limits, metrics }: AppDeps,
  routes: readonly Route[],
  more: Pick<AppDependencies, 'loadRoutes' | 'isInferencePath' | 'permits' | 'authenticator' | 'audit'>,
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
    logsAccess: () => options().accessLog,
    onFault: () => metrics.increment('faults'),
    ...(socket === undefined ? {} : { ...ofSocket(socket), guard: new OriginGuard(options()) }),
    ...more,
  });
}

function ofSocket(socket: Socket): Pick<AppDependencies, 'clientOf' | 'extendIdle' | 'connectionOf'> {
  return {
    clientOf: (request) => socket.clientOf(request),
    extendIdle: (request, seconds) => socket.extendIdle(request, seconds),
    connectionOf: (request) => socket.connectionOf(request),
  };
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
