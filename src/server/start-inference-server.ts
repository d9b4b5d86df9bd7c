import packageFile from '../../package.json' with { type: 'json' };
import { limitsOf } from '../config/load.ts';
import { standaloneRoutes } from '../http/routing/standalone-routes.ts';
import { pause, systemClock } from '../lib/clock.ts';
import { startEventLoopMonitor } from '../observability/event-loop-monitor.ts';
import { Metrics } from '../observability/metrics.ts';
import { addProcessMetrics } from '../observability/process-metrics.ts';
import { Readiness } from '../observability/readiness.ts';
import { descriptorLimit } from '../runtime/descriptor-limit.ts';
import { createApp } from './create-app.ts';
import { openInference, startInference } from './inference/open-inference.ts';
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
  let isStopping = false;
  readiness.add('draining', () => !isStopping && !app.inFlight.draining);
  addProcessMetrics(metrics, clock, packageFile.version, descriptorLimit());
  const stopMonitor = startEventLoopMonitor(systemClock, metrics);
  const running = startInference(inference, parts, readiness);
  listener.attach(app);
  return Promise.resolve({
    url: listener.url,
    facts: { models_dir: config.config.modelsDir },
    fatal: Promise.withResolvers<void>().promise,
    async drain(deadlineMs) {
      isStopping = true;
      if (config.config.stopDelayMs > 0) await pause(clock, config.config.stopDelayMs);
      const cut = await listener.drain(app, deadlineMs, clock);
      if (cut > 0) logger.warn('requests were cut at the drain deadline', { requests: cut });
    },
    async stop() {
      stopMonitor();
      await running.stop();
    },
  });
}
