import packageFile from '../../package.json' with { type: 'json' };
import { systemClock } from '../lib/clock.ts';
import { startEventLoopMonitor } from '../observability/event-loop-monitor.ts';
import { startMetricsServer } from '../observability/metrics-server.ts';
import { addProcessMetrics } from '../observability/process-metrics.ts';
import { descriptorLimit } from '../runtime/descriptors.ts';
import { afterStart } from './after-start.ts';
import { openDraining } from './draining.ts';
import { watchDescriptors } from './observability/descriptor-watch.ts';
import { collectServiceMetrics } from './observability/service-metrics.ts';
import { openServices } from './open-services.ts';
import type { RunningServer, ServerStart } from './running-server.ts';

/** The database and inference behind the listener, with the second listener for metrics. */
export async function startServer(start: ServerStart): Promise<RunningServer> {
  const { config, listener, logger, clock, writer } = start;
  const options = config.config;
  // Closes again what is open already where a later step fails.
  await using opened = new AsyncDisposableStack();
  const services = await openServices({ config, logger, clock, socket: listener, writer });
  opened.defer(() => services.close());
  const { app, database, metrics, readiness } = services;
  const drain = openDraining({ config, listener, app, readiness, clock, logger });
  addProcessMetrics(metrics, clock, packageFile.version, descriptorLimit);
  collectServiceMetrics(metrics, { app, config, database, port: listener.port });
  const metricsServer = startMetricsServer(options.metricsHost, options.metricsPort, metrics, readiness);
  opened.defer(() => metricsServer.stop());
  const firstKey = await services.makeFirstKey();
  // The thread's own time, whatever the clock of the data says.
  const stopMonitor = startEventLoopMonitor(systemClock, metrics);
  const stopWatch = watchDescriptors({ listener, clock: systemClock, logger });
  const callOff = afterStart({ app, clock: systemClock, logger, hugePages: options.hugePages });
  listener.attach(app);
  // From now on `stop` closes them.
  opened.move();
  return {
    url: listener.url,
    firstKey,
    facts: { data_dir: options.dataDir },
    fatal: database.failed,
    drain,
    async stop() {
      stopMonitor();
      stopWatch();
      callOff();
      await services.close();
      await metricsServer.stop();
    },
  };
}
