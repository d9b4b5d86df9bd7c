import packageFile from '../../package.json' with { type: 'json' };
import { limitsOf } from '../config/load.ts';
import { standaloneRoutes } from '../http/routing/standalone-routes.ts';
import { systemClock } from '../lib/clock.ts';
import { startEventLoopMonitor } from '../observability/event-loop-monitor.ts';
import { Metrics } from '../observability/metrics.ts';
import { addProcessMetrics } from '../observability/process-metrics.ts';
import { Readiness } from '../observability/readiness.ts';
import { descriptorLimit } from '../runtime/descriptors.ts';
import { afterStart } from './after-start.ts';
import { createApp } from './create-app.ts';
import { openDraining } from './draining.ts';
import { openInference, startInference } from './inference/open-inference.ts';
import { watchDescriptors } from './observability/descriptor-watch.ts';
import type { RunningServer, ServerStart } from './running-server.ts';

/** A server of inference alone: no storage is opened, nothing asks for a credential. */
export function startInferenceServer({ config, listener, logger, clock }: ServerStart): Promise<RunningServer> {
  const limits = limitsOf(config.config);
  const metrics = new Metrics();
  const readiness = new Readiness();
  const parts = { config: config.config, limits, clock, logger: logger.component('inference'), metrics };
  const inference = openInference(parts);
  const routes = standaloneRoutes(inference, readiness, metrics, packageFile.version);
  const app = createApp({ options: () => config.config, socket: listener, logger, clock, limits, metrics }, routes, {
    isInferencePath: () => true,
    permits: inference.admission,
  });
  const drain = openDraining({ config, listener, app, readiness, clock, logger });
  addProcessMetrics(metrics, clock, packageFile.version, descriptorLimit);
  const stopMonitor = startEventLoopMonitor(systemClock, metrics);
  const stopWatch = watchDescriptors({ listener, clock: systemClock, logger });
  const running = startInference(inference, parts, readiness);
  const callOff = afterStart({ app, clock: systemClock, logger, hugePages: false });
  listener.attach(app);
  return Promise.resolve({
    url: listener.url,
    facts: { models_dir: config.config.modelsDir },
    fatal: Promise.withResolvers<void>().promise,
    drain,
    async stop() {
      stopMonitor();
      stopWatch();
      callOff();
      await running.stop();
    },
  });
}
